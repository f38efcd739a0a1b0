"""A replacement that learns 1 GB does not cost another group on the same servers its SLA.

Four servers. Group B runs at exactly its reserved rate (open loop) all the time. Group A holds 1 GB. A server that has
a replica of A and none of B is killed. The replacement of A's replica stands on a server that carries B, and copies A's
log from servers that B uses. Throughput and p99 of B are compared with those just
before, several times. Medians count.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from quorate_claims.claim import Conditions
from quorate_harness.figures import Figure
from quorate_harness.fleet import Fleet, MeasurementFailed, fleet
from quorate_harness.quantiles import median
from quorate_harness.steady import Steady, Window

SERVERS = 4
REPEATS = 3
LOG_BYTES, LOG_BYTES_QUICK = 1_000_000_000, 100_000_000
ENTRY_BYTES = 65_536
FILL_PER_S = 1_500  # reserved by A: 100 MB/s
FILL_OUTSTANDING = 256
FILL_TIMEOUT_S = 120.0
NEIGHBOUR_PER_S = 20_000
BASELINE_S, BASELINE_QUICK_S = 8.0, 2.0
SETTLE_S = 1.0
CATCHUP_TIMEOUT_S = 180.0
THROUGHPUT_MIN = 0.95
P99_RATIO_MAX = 2.0


@dataclass(frozen=True)
class Pair:
    """The neighbour without and with the catch-up, and how long that took."""

    baseline: Window
    catchup: Window
    seconds: float


def measure(conditions: Conditions) -> list[Figure]:
    repeats = 1 if conditions.quick else conditions.trials or REPEATS
    log_bytes = LOG_BYTES_QUICK if conditions.quick else LOG_BYTES
    with fleet(conditions.folder, conditions.display, SERVERS) as servers:
        neighbour = servers.create_group("neighbour", "persistent", NEIGHBOUR_PER_S)
        with Steady(servers, "neighbour", [neighbour], "--rate", str(NEIGHBOUR_PER_S)) as load:
            pairs = []
            for number in range(repeats):
                pairs.append(_pair(servers, neighbour, load, f"{number + 1} of {repeats}", conditions, log_bytes))
                conditions.display.line(f"  {number + 1} of {repeats}: {_spoken(pairs[-1], log_bytes)}")
            ended = load.end()
            if ended["refused"] or ended["unknown"]:
                raise MeasurementFailed(f"the neighbour's appends failed: {ended['refused']}, {ended['unknown']}")
            conditions.display.line(f"  {load.verify()}")
    return figures(pairs, log_bytes)


def _pair(servers: Fleet, neighbour: str, load: Steady, which: str, conditions: Conditions, log_bytes: int) -> Pair:
    display = conditions.display
    group_id, victim = _group_with_a_server_of_its_own(servers, neighbour, log_bytes)
    _fill(servers, group_id, log_bytes, which)
    time.sleep(SETTLE_S)
    load.mark("baseline")
    display.progress(f"  {which}: the neighbour alone")
    time.sleep(BASELINE_QUICK_S if conditions.quick else BASELINE_S)
    baseline = load.mark("catch-up")
    begun = time.monotonic()
    servers.stack.kill_server(victim)
    servers.wait(lambda: not servers.is_whole(group_id), "the failure to be noticed")
    while not servers.is_whole(group_id):
        seconds = time.monotonic() - begun
        if seconds > CATCHUP_TIMEOUT_S:
            raise MeasurementFailed(f"the replacement has not caught up after {seconds:.0f} s")
        display.progress(f"  {which}: the replacement catches up, {seconds:.0f} s")
        time.sleep(0.05)
    catchup = load.mark("between")
    seconds = time.monotonic() - begun
    servers.delete_group(group_id)
    servers.restart_server(victim)
    servers.wait_whole(neighbour)
    return Pair(baseline, catchup, seconds)


def _group_with_a_server_of_its_own(servers: Fleet, neighbour: str, log_bytes: int) -> tuple[str, str]:
    """A new group, and a server that has a replica of it and none of the neighbour."""
    name = f"large-{time.monotonic_ns()}"
    retention = {"retention_bytes": 2 * log_bytes}
    group_id = servers.create_group(name, "persistent", FILL_PER_S, ENTRY_BYTES, **retention)
    taken = {replica["address"] for replica in servers.group(neighbour)["replicas"]}
    own = [replica["address"] for replica in servers.group(group_id)["replicas"] if replica["address"] not in taken]
    if not own:
        raise MeasurementFailed(
            "both groups were placed on the same three servers; the fourth should have been less loaded"
        )
    return group_id, servers.stack.servers_by_address()[own[0]]


def _fill(servers: Fleet, group_id: str, log_bytes: int, which: str) -> None:
    begun, written = time.monotonic(), 0
    flags = ["--size", str(ENTRY_BYTES), "--outstanding", str(FILL_OUTSTANDING)]
    with Steady(servers, "fill", [group_id], *flags) as load:
        while written < log_bytes:
            if time.monotonic() - begun > FILL_TIMEOUT_S:
                raise MeasurementFailed(f"only {written / 1e6:,.0f} MB were written in {FILL_TIMEOUT_S:.0f} s")
            time.sleep(0.1)
            written += load.mark("fill").acked * ENTRY_BYTES
            servers.display.progress(f"  {which}: writing {written / 1e6:,.0f} of {log_bytes / 1e6:,.0f} MB")
        load.end()


def figures(pairs: list[Pair], log_bytes: int) -> list[Figure]:
    """Pure."""
    baseline, catchup = [pair.baseline for pair in pairs], [pair.catchup for pair in pairs]
    throughput = median([w.acked_per_s for w in catchup]) / median([w.acked_per_s for w in baseline])
    p99 = median([w.p99_us for w in catchup]) / median([w.p99_us for w in baseline])
    seconds = median([pair.seconds for pair in pairs])
    p99s = f"{median([w.p99_us for w in baseline]):,.0f} and {median([w.p99_us for w in catchup]):,.0f} µs"
    note = f"{NEIGHBOUR_PER_S:,} appends/s reserved and offered, persistent; {log_bytes / 1e6:,.0f} MB caught up "
    note += f"at {log_bytes / 1e6 / seconds:,.0f} MB/s; median of {len(pairs)}"
    return [
        Figure("catchup_neighbour_throughput_ratio", throughput, "ratio", THROUGHPUT_MIN, True, note),
        Figure("catchup_neighbour_p99_ratio", p99, "ratio", P99_RATIO_MAX, note=f"p99 without and with: {p99s}"),
        Figure("catchup_1gb_s", seconds * 1e9 / log_bytes, "s", note="from the kill to full degree again"),
    ]


def _spoken(pair: Pair, log_bytes: int) -> str:
    ratio = pair.catchup.acked_per_s / max(1.0, pair.baseline.acked_per_s)
    speed = log_bytes / 1e6 / pair.seconds
    return (
        f"caught up in {pair.seconds:.1f} s ({speed:,.0f} MB/s); the neighbour's throughput {100 * ratio:.1f} %, "
        f"p99 {pair.baseline.p99_us:,} → {pair.catchup.p99_us:,} µs"
    )
