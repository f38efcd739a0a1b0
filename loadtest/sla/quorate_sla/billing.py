"""Bills under faults: what is billed equals what is in the log, whatever crashes between the two.

Each run appends to a group of its own, in the middle of which one of two workers is killed, and one of: Redis,
PostgreSQL, the group's head, the other worker. All are started again. Then the open invoice must reach the number of
entries that the log has, and stay there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice

from quorate_harness.customer import Customer, billed_entries
from quorate_harness.figures import Figure
from quorate_harness.fleet import MeasurementFailed
from quorate_local import Stack
from quorate_local.display import Display
from quorate_sla.clients import Program

RUNS = 20
RATE_PER_S = 500
RETENTION_BYTES = 32 << 20
APPEND_S = 18.0
FAULT_AT_S = 5.0
DOWN_S = 3.0
WRITER_TIMEOUT_S = 120
BILLED_TIMEOUT_S = 120.0
STAYS_S = 5.0  # longer than a worker takes to bill what comes twice
FAULTS = ("redis", "postgres", "head", "worker")


@dataclass(frozen=True)
class Run:
    fault: str
    acked: int
    unknown: int
    log: int
    billed: int


def measure(stack: Stack, customer: Customer, display: Display, quick: bool) -> list[Figure]:
    runs = []
    for number, fault in enumerate(faults(2 if quick else RUNS)):
        run = _run(stack, customer, number, fault)
        runs.append(run)
        difference = run.billed - run.log
        text = f"{run.acked} acked, {run.unknown} unknown, {run.log} in the log, billed {difference:+d}"
        display.line(f"    {number + 1:2} {fault:<9} {text}")
    return [figure(runs)]


def faults(count: int) -> Iterator[str]:
    return islice(cycle(FAULTS), count)


def figure(runs: list[Run]) -> Figure:
    """Differences do not make up for one another."""
    off = sum(abs(run.billed - run.log) for run in runs)
    entries = sum(run.log for run in runs)
    note = f"{len(runs)} runs, {entries} entries, {sum(run.unknown for run in runs)} appends of unknown outcome"
    return Figure("billed_minus_acked", off, "entries", 0, note=note)


def _run(stack: Stack, customer: Customer, number: int, fault: str) -> Run:
    # All groups stay, and a small machine has to hold them.
    sla = {
        "durability": "persistent", "replication_degree": 3, "request_size_bytes": 64, "rate_per_s": 1_000,
        "retention_bytes": RETENTION_BYTES,
    }  # fmt: skip
    group_id = customer.create_group(f"billed-{number}", sla)["id"]
    process = Program("writer", "python", group_id).start(customer, RATE_PER_S, APPEND_S)
    try:
        time.sleep(FAULT_AT_S)
        if process.poll() is not None:
            raise MeasurementFailed("the writer ended before the fault")
        _break(stack, customer, group_id, number, fault)
        out, _ = process.communicate(timeout=WRITER_TIMEOUT_S)
    finally:
        process.kill()
    if process.returncode != 0:
        raise MeasurementFailed(f"the writer ended with {process.returncode}")
    ended = json.loads(out)
    acked, unknown, log = ended["acked"], ended["unknown"], ended["log"]
    if not acked <= log <= acked + unknown:
        raise MeasurementFailed(f"the log does not have what was acked: {ended}")
    customer.settled_invoice(group_id, log, BILLED_TIMEOUT_S)
    time.sleep(STAYS_S)
    billed = billed_entries(customer.get("/v1/invoices/current"), group_id)
    return Run(fault, acked, unknown, log, billed)


def _break(stack: Stack, customer: Customer, group_id: str, number: int, fault: str) -> None:
    """Crash one worker and the other victim, and start both again a few seconds later."""
    workers = stack.options.worker_names()
    first = workers[number % len(workers)]
    other = workers[(number + 1) % len(workers)]
    victims = [first, {"head": _head(stack, customer, group_id), "worker": other}.get(fault, fault)]
    for name in victims:
        stack.crash(name)
    time.sleep(DOWN_S)
    for name in reversed(victims):  # workers last: they look for their data stores at their start
        stack.restart(name)


def _head(stack: Stack, customer: Customer, group_id: str) -> str:
    replicas = customer.placement(group_id)["replicas"]
    address = next(each["address"] for each in replicas if each["role"] in ("head", "sole"))
    return stack.servers_by_address()[str(address)]
