"""Losing a head under load: for how long is nothing acknowledged, and where does that time go?

Two groups, one of each durability, receive appends at a steady rate (open loop) all the time. Each trial kills the head
of one of them with kill -9. The gap is the longest time between two consecutive acknowledgements, as the client saw it.
Then the fleet becomes whole again, and the killed server returns. At the end both logs are read back: everything that
was acknowledged in all trials is there, once and in order.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from quorate_claims.claim import Conditions
from quorate_harness.figures import Figure
from quorate_harness.fleet import Fleet, MeasurementFailed, fleet, log_lines
from quorate_harness.quantiles import median, quantile
from quorate_harness.steady import Steady, Window

TRIALS = 30
TRIALS_QUICK = 4
SERVERS = 5
RATE_PER_S = 5_000
RESERVED_PER_S = 10_000  # room to take in what became due in the gap
GOAL_MS = 1_000
SETTLE_S = 0.4  # steady load before a kill …
PHASE_S = 0.25  # … and so much more at random: a heartbeat's interval, so that kills hit all of its phases
RECOVER_TIMEOUT_S = 20.0
LOOK_S = 0.05
FRESH_US = 250_000  # acknowledgements count as flowing again when the last is not older
DURABILITIES = ("persistent", "in_memory")


@dataclass(frozen=True)
class Trial:
    """Milliseconds. `detected` … `acked` follow one another and add up to about the gap; None: not seen.

    `detected`: from the kill to the coordinator's verdict. `adopted`: until the new head has the new epoch.
    `attached`: until the client has it for a head. `acked`: until the first acknowledgement after that.
    """

    durability: str
    gap_ms: float
    detected_ms: float | None
    adopted_ms: float | None
    attached_ms: float | None
    acked_ms: float | None


def measure(conditions: Conditions) -> list[Figure]:
    trials = conditions.trials or (TRIALS_QUICK if conditions.quick else TRIALS)
    display = conditions.display
    # The new head says at this level when it adopts an epoch.
    log = {"QUORATE_LOG": "info,quorate_replica::shard=debug"}
    with fleet(conditions.folder, display, SERVERS, server_env=log) as servers:
        groups = {
            durability: servers.create_group(durability.replace("_", "-"), durability, RESERVED_PER_S)
            for durability in DURABILITIES
        }
        rate = ("--rate", str(RATE_PER_S))
        with (
            Steady(servers, "persistent", [groups["persistent"]], *rate) as persistent,
            Steady(servers, "in_memory", [groups["in_memory"]], *rate) as in_memory,
        ):
            loads = {"persistent": persistent, "in_memory": in_memory}
            done: list[Trial] = []
            for number in range(trials):
                durability = DURABILITIES[number % 2]
                worst = max((trial.gap_ms for trial in done), default=0)
                display.progress(f"  trial {number + 1} of {trials}, {durability}   worst gap so far {worst:,.0f} ms")
                done.append(_trial(servers, groups, loads, durability))
            display.progress("  reading everything back")
            verdicts = [_end_and_verify(load) for load in loads.values()]
    for line in [*_table(done), *verdicts]:
        display.line(f"  {line}")
    return _figures(done)


def _trial(servers: Fleet, groups: dict[str, str], loads: dict[str, Steady], durability: str) -> Trial:
    servers.wait_whole(*groups.values(), timeout_s=RECOVER_TIMEOUT_S)
    time.sleep(SETTLE_S + random.uniform(0, PHASE_S))
    group_id, load = groups[durability], loads[durability]
    addresses = servers.stack.servers_by_address()
    head = servers.group(group_id)["replicas"][0]
    victim = addresses[head["address"]]
    logs = {name: servers.log(name) for name in ["coordinator", *servers.names()]}
    sizes = {name: log.stat().st_size for name, log in logs.items()}
    load.mark("trial")
    killed_us = time.time_ns() // 1_000
    servers.stack.kill_server(victim)
    servers.wait(lambda: servers.group(group_id)["replicas"][0]["server_id"] != head["server_id"], "a new head")
    servers.wait_whole(*groups.values(), timeout_s=RECOVER_TIMEOUT_S)
    window = once_acknowledged(load)
    new_head = servers.group(group_id)["replicas"][0]
    verdict_us = _verdict_us(logs["coordinator"], sizes["coordinator"], head["server_id"])
    name = addresses[new_head["address"]]
    adopted_us = _adopted_us(logs[name], sizes[name], group_id, killed_us)
    servers.restart_server(victim)
    return split(durability, killed_us, verdict_us, adopted_us, window)


def once_acknowledged(load: Steady) -> Window:
    """The window since the last mark, as soon as acknowledgements flow again."""
    deadline = time.monotonic() + RECOVER_TIMEOUT_S
    gaps, links = [], []
    while time.monotonic() < deadline:
        window = load.mark("trial")
        links += window.links
        if window.gap is not None:
            gaps.append(window.gap)
        if window.acked and window.silent_us is not None and window.silent_us < FRESH_US:
            return replace(window, gap=max(gaps, key=lambda gap: gap[1] - gap[0]), links=links)
        time.sleep(LOOK_S)
    raise MeasurementFailed(f"{load.name}: a whole group, and nothing is acknowledged for {RECOVER_TIMEOUT_S:.0f} s")


def split(durability: str, killed_us: int, verdict_us: int | None, adopted_us: int | None, window: Window) -> Trial:
    """Divides the time from the kill to the first acknowledgement: verdict, new epoch, attached again. Pure."""
    assert window.gap is not None, "a trial has a gap"
    attached_us = next((at for at, epoch in window.links if epoch is not None and at > killed_us), None)
    acked_us = window.gap[1] if window.gap[1] > killed_us else None
    moments = [killed_us, verdict_us, adopted_us, attached_us, acked_us]
    parts = [
        (after - before) / 1_000 if before is not None and after is not None else None
        for before, after in pairwise(moments)
    ]
    return Trial(durability, (window.gap[1] - window.gap[0]) / 1_000, *parts)


def _verdict_us(log: Path, begin: int, server_id: int) -> int | None:
    for at, line in log_lines(log, begin):
        fields = line.get("fields", line)
        if fields.get("message") == "server failed" and fields.get("server_id") == server_id:
            return at
    return None


def _adopted_us(log: Path, begin: int, group_id: str, after_us: int) -> int | None:
    for at, line in log_lines(log, begin):
        fields = line.get("fields", line)
        if fields.get("message") == "epoch adopted" and fields.get("group_id") == group_id and at > after_us:
            return at
    return None


def _end_and_verify(load: Steady) -> str:
    ended = load.end()
    if ended["refused"] or ended["unknown"]:
        raise MeasurementFailed(f"appends failed: refused {ended['refused']}, unknown {ended['unknown']}")
    return load.verify()


PARTS = ("gap", "detected", "adopted", "attached", "acked")


def _table(trials: Sequence[Trial]) -> list[str]:
    lines = [f"{'ms, median (greatest)':<24}" + "".join(f"{part:>16}" for part in PARTS)]
    for durability in DURABILITIES:
        cells = []
        for part in PARTS:
            values = [v for t in trials if t.durability == durability and (v := getattr(t, f"{part}_ms")) is not None]
            cells.append(f"{median(values):,.0f} ({max(values):,.0f})" if values else "–")
        lines.append(f"{durability:<24}" + "".join(f"{cell:>16}" for cell in cells))
    return lines


def _figures(trials: Sequence[Trial]) -> list[Figure]:
    gaps = [trial.gap_ms for trial in trials]

    def part(name: str) -> float:
        return median([value for trial in trials if (value := getattr(trial, f"{name}_ms")) is not None] or [0.0])

    split_note = ", ".join(f"{name} {part(name):,.0f}" for name in PARTS[1:])
    note = (
        f"{len(trials)} kills of a head under {RATE_PER_S:,} appends/s, both durabilities; medians of the parts, ms: "
    )
    return [
        Figure("failover_gap_p99_ms", quantile(gaps, 0.99), "ms", GOAL_MS, note=note + split_note),
        Figure("failover_gap_median_ms", median(gaps), "ms"),
        Figure("failover_detection_median_ms", part("detected"), "ms"),
    ]
