"""A follower that is stopped (SIGSTOP) under full load costs bounded memory, and no acknowledged entry.

An in-memory and a persistent group share three servers, and many connections append as fast as the servers let them. In
one run failures are detected as always: the stopped follower leaves the chain within seconds. In the other run the
lease is so long that the follower stays in the chain while it is stopped, and nothing can be committed. Appends must
then be held back and refused with clear answers, not gathered. After the follower goes on, appends are acknowledged
again, and every acknowledged entry is there.
"""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from quorate_claims.claim import Conditions
from quorate_claims.limits import limits
from quorate_harness.figures import Figure
from quorate_harness.fleet import Fleet, MeasurementFailed, fleet
from quorate_harness.steady import Steady

SERVERS = 3
ENTRY_BYTES = 4_096
RATE_PER_S = 6_000  # per group: 25 MB/s; together more in a second than a group may have uncommitted
CONNECTIONS = 12  # per group: a client has 8 MiB outstanding at most, so several are needed to fill a server
OUTSTANDING = 48_000
APPEND_TIMEOUT_S = 4
RETENTION_BYTES = 64 << 20
WARM_S, WARM_QUICK_S = 6.0, 1.0
STOPPED_S, STOPPED_QUICK_S = {"as always": 6.0, "slowly": 22.0}, {"as always": 2.0, "slowly": 4.0}
AFTER_S, AFTER_QUICK_S = 3.0, 0.5
RESUME_TIMEOUT_S = 30.0
# Slowly: the follower stays in its chains for all of the load, whatever is noticed of it.
_LONG = "120000"
LEASES = {
    "as always": {},
    "slowly": {f"QUORATE_{what}_MS": _LONG for what in ("LEASE", "SLOW", "UNREACHABLE", "WELL")},
}
# Codes a client may receive for an append that was not ordered, or whose outcome is unknown.
ANSWERS = {"throttled", "overloaded", "deadline_exceeded", "paused", "no_connection", "no_answer"}


@dataclass(frozen=True)
class Seen:
    peak_bytes: int
    bound_bytes: int
    stopped_acked_per_s: float
    refused: dict[str, int]
    unknown: dict[str, int]


def measure(conditions: Conditions) -> list[Figure]:
    found = {detected: _run(conditions, detected) for detected in LEASES}
    for detected, seen in found.items():
        line = f"detected {detected}: peak {seen.peak_bytes / 1e6:,.0f} MB, bound {seen.bound_bytes / 1e6:,.0f} MB; "
        line += f"{seen.stopped_acked_per_s:,.0f} acknowledged a second while it was stopped; "
        conditions.display.line(f"  {line}refused {seen.refused or 'none'}, unknown {seen.unknown or 'none'}")
    worst = max(found.values(), key=lambda seen: seen.peak_bytes / seen.bound_bytes)
    seconds = (STOPPED_QUICK_S if conditions.quick else STOPPED_S)["slowly"]
    note = (
        f"greatest resident memory of any server; a follower stopped for {seconds:.0f} s in the chain; goal: the bound"
    )
    return [
        Figure("stopped_follower_memory_mb", worst.peak_bytes / 1e6, "MB", round(worst.bound_bytes / 1e6), note=note)
    ]


def bound_bytes(idle_bytes: int, connections: int) -> int:
    """The most that a server with one group of each durability may hold, by `limits.rs`. Pure but for reading that."""
    limit = limits()
    log = RETENTION_BYTES + limit["RECENT_BYTES_PER_GROUP"]  # the in-memory and the persistent group's
    group = limit["UNCOMMITTED_BYTES_MAX"] + limit["QUEUE_BYTES_MAX"]
    # Bytes that a connection has read of its next frame. A complete batch counts in its group from then on.
    reading = connections * limit["BATCH_BYTES_MAX"]
    return idle_bytes + log + 2 * group + limit["JOURNAL_BUFFER_BYTES_MAX"] + reading


def _run(conditions: Conditions, detected: str) -> Seen:
    display = conditions.display
    warm_s, after_s = (WARM_QUICK_S, AFTER_QUICK_S) if conditions.quick else (WARM_S, AFTER_S)
    stopped_s = (STOPPED_QUICK_S if conditions.quick else STOPPED_S)[detected]
    sla = {"size": ENTRY_BYTES, "retention_bytes": RETENTION_BYTES}
    folder = conditions.folder / detected.replace(" ", "-")
    with fleet(folder, display, SERVERS, coordinator_env=LEASES[detected]) as servers:
        groups = [
            servers.create_group(durability.replace("_", "-"), durability, RATE_PER_S, **sla)
            for durability in ("in_memory", "persistent")
        ]
        idle = max(servers.memory_bytes(name)[0] for name in servers.names())
        bound = bound_bytes(idle, 2 * CONNECTIONS)
        flags = ["--size", str(ENTRY_BYTES), "--outstanding", str(OUTSTANDING), "--connections", str(CONNECTIONS)]
        flags += ["--timeout", str(APPEND_TIMEOUT_S)]
        with (
            Steady(servers, "first", groups[:1], *flags) as first,
            Steady(servers, "second", groups[1:], *flags) as second,
        ):
            loads = (first, second)
            _pass(servers, warm_s, f"detected {detected}: full load")
            _stop_follower(servers, groups, loads, stopped_s, f"detected {detected}: a follower is stopped")
            stopped = [load.mark("resumed") for load in loads]
            _wait_flowing(servers, loads)
            servers.wait_whole(*groups, timeout_s=RESUME_TIMEOUT_S)
            _pass(servers, after_s, "resumed")
            display.progress("  reading everything back")
            ended = [load.end() for load in loads]
            for load in loads:
                load.verify()
        peak = max(servers.memory_bytes(name)[1] for name in servers.names())
    refused, unknown = _sum(end["refused"] for end in ended), _sum(end["unknown"] for end in ended)
    if unclear := (set(refused) | set(unknown)) - ANSWERS:
        raise MeasurementFailed(f"appends were answered with {', '.join(sorted(unclear))}")
    return Seen(peak, bound, sum(window.acked_per_s for window in stopped), refused, unknown)


def _stop_follower(servers: Fleet, groups: list[str], loads: tuple[Steady, ...], seconds: float, what: str) -> None:
    """Stops a follower that is the head of neither group, so that their clients go on."""
    addresses = servers.stack.servers_by_address()
    heads = {servers.group(group_id)["replicas"][0]["address"] for group_id in groups}
    victim = next(name for address, name in addresses.items() if address not in heads)
    identity = servers.stack.processes()[victim].identity
    identity.send(signal.SIGSTOP)
    try:
        for load in loads:
            load.mark("stopped")
        _pass(servers, seconds, what)
    finally:
        identity.send(signal.SIGCONT)


def _wait_flowing(servers: Fleet, loads: tuple[Steady, ...]) -> None:
    for load in loads:
        flows = partial(_flows, load)
        servers.wait(flows, f"acknowledgements of the {load.name} group", RESUME_TIMEOUT_S)


def _flows(load: Steady) -> bool:
    return load.mark("resumed").acked > 0


def _pass(servers: Fleet, seconds: float, what: str) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        memory = max(servers.memory_bytes(name)[0] for name in servers.names())
        servers.display.progress(f"  {what}, {left:.0f} s left, largest server {memory / 1e6:,.0f} MB")
        time.sleep(min(left, 0.1))


def _sum(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)
