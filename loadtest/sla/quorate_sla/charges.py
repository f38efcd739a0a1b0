"""One rule for what a batch costs: head, SLA and SDKs charge the same for random batches of random groups."""

from __future__ import annotations

import json
import math
import random
import subprocess
from dataclasses import dataclass
from typing import Any

from quorate_harness.customer import Customer
from quorate_harness.figures import Figure
from quorate_harness.fleet import MeasurementFailed
from quorate_local import StackOptions
from quorate_local.components import binary
from quorate_local.display import Display
from quorate_sla.clients import LANGUAGES, command_of

GROUPS = 24  # real ones, whose charges come from their handles
INVENTED = 176  # and others, with any numbers
BATCHES = 500
ENTRIES_MAX, BYTES_MAX = 65_536, 4 << 20
HEADROOM = 17 / 16  # a client's (sdk/contract/pacing.md)
FULL_US = 1e6
ROUNDING_US = 2.0
TIMEOUT_S = 300
SEED = 20_261_128


@dataclass(frozen=True)
class Trace:
    charges: dict[str, Any]
    batches: list[tuple[int, int]]

    def as_json(self) -> dict[str, Any]:
        return {"charges": self.charges, "batches": self.batches}


def measure(customer: Customer, display: Display, quick: bool) -> list[Figure]:
    rng = random.Random(SEED)
    divisor = 8 if quick else 1
    sold = [charges_of(customer, f"charges-{number}", rng) for number in range(GROUPS // divisor)]
    invented = [invent(rng) for _ in range(INVENTED // divisor)]
    traces = [Trace(charges, [batch(rng) for _ in range(BATCHES // divisor)]) for charges in (*sold, *invented)]
    asked = json.dumps([trace.as_json() for trace in traces])
    head = _answers([str(binary(StackOptions(), "quorate-load")), "charges"], asked)
    found: dict[str, int] = {}
    for language in LANGUAGES:
        answers = _answers(command_of("charges", language), asked)
        found[language] = sum(map(disagreements, head, answers))
        display.line(
            f"    {language}: {found[language]} of {sum(len(trace.batches) for trace in traces)} batches differ"
        )
    return [figure(found, len(traces), BATCHES // divisor, len(sold))]


def charges_of(customer: Customer, name: str, rng: random.Random) -> dict[str, Any]:
    """The charges of a real group with any SLA."""
    sla = {
        "durability": rng.choice(["in_memory", "persistent"]),
        "replication_degree": rng.choice([1, 2, 3]),
        "request_size_bytes": rng.choice([16, 64, 100, 1_024, 4_096]),
        "rate_per_s": rng.choice([1, 7, 50, 200]),
    }
    group_id = customer.create_group(name, sla)["id"]
    charges: dict[str, Any] | None = customer.get(f"/v1/groups/{group_id}/handle")["charges"]
    if charges is None:
        raise MeasurementFailed("a handle has no charges")
    return charges


def invent(rng: random.Random) -> dict[str, Any]:
    def any_of(largest: int) -> list[int]:
        return [rng.choice([0, rng.randrange(largest)]) for _ in range(3)]

    rate_per_s = rng.choice([1, 16, 1_000, 100_000])
    fixed, per_byte = any_of(100_000_000), any_of(100_000)
    tokens = [rate_per_s * (each + 64 * byte) for each, byte in zip(fixed, per_byte, strict=True)]
    return {
        "rate_per_s": rate_per_s,
        "tokens_per_s_milli": tokens,
        "cost": {"fixed_milli": fixed, "per_byte_milli": per_byte},
        # An empty bucket of nothing lets pass what costs nothing.
        "short_batch": {
            "entries": rng.choice([0, 4, 16]),
            "lacking_milli": [rng.randrange(10_000) if each else 0 for each in tokens],
        },
    }


def batch(rng: random.Random) -> tuple[int, int]:
    entries = min(ENTRIES_MAX, int(math.exp(rng.random() * math.log(ENTRIES_MAX)) + 0.5))
    return entries, min(BYTES_MAX, entries * rng.choice([0, 1, 16, 60, 64, 100, 1_000, 4_096, rng.randrange(1 << 20)]))


def disagreements(head: dict[str, Any], client: dict[str, Any]) -> int:
    """Batches of a trace for which a client takes other tokens than the head, or waits otherwise than the SLA."""
    found = 0
    columns = (head["head_milli"], head["sla_wait_us"], client["milli"], client["wait_us"])
    for taken, owed_us, milli, wait_us in zip(*columns, strict=True):
        # A batch that costs more than a bucket holds passes when the bucket is full.
        expected_us = min(wait_us * HEADROOM, FULL_US)
        same_wait = abs(expected_us - owed_us) <= ROUNDING_US + 1e-6 * owed_us
        found += taken != milli or not same_wait
    return found


def _answers(command: list[str], asked: str) -> list[dict[str, Any]]:
    done = subprocess.run(command, input=asked, stdout=subprocess.PIPE, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise MeasurementFailed(f"{command[0]} ended with {done.returncode}")
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return answers


def figure(found: dict[str, int], traces: int, batches: int, sold: int) -> Figure:
    note = f"{traces * batches} batches of {traces} groups, {sold} of them real; {', '.join(found)}"
    return Figure("cost_rule_disagreements", sum(found.values()), "batches", 0, note=note)
