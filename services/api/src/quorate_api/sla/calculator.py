"""The SLA report of a group from its usage windows. Pure: checked against a brute-force oracle.

A minute without a head's telemetry is bad, with one exception. The same head (server, incarnation, epoch) reported
before and after it, and the log had not grown in between: the head was there, and the group had no traffic.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from quorate_api.sla.targets import AVAILABILITY, LATENCY, LATENCY_P99_US, PPM, RESOLUTION_MS, THROUGHPUT, Clause
from quorate_api.telemetry import histogram
from quorate_api.telemetry.windows import WINDOW_S, Window

WINDOW_MS = WINDOW_S * 1_000


@dataclass(frozen=True, slots=True)
class Minute:
    """One judged minute. `elapsed_ms` is less than a minute if the group began or ended in it."""

    start_s: int
    elapsed_ms: int
    active_ms: int
    measured: bool  # telemetry exists, or shows that the group had no traffic
    throttled_within_sla_entries: int
    latency: dict[int, int]

    @property
    def p99_us(self) -> int | None:
        return histogram.quantile_us(self.latency, 990)


@dataclass(frozen=True, slots=True)
class Incident:
    """A run of bad minutes."""

    clause: str
    start_s: int
    end_s: int
    reason: str


@dataclass(frozen=True, slots=True)
class Attainment:
    clause: Clause
    attained_ppm: int | None  # None: nothing was counted
    good_minutes: int
    bad_minutes: int

    @property
    def met(self) -> bool:
        return self.attained_ppm is None or self.attained_ppm >= self.clause.target_ppm

    @property
    def credit_percent(self) -> int:
        return 0 if self.attained_ppm is None else self.clause.credit_percent(self.attained_ppm)


@dataclass(frozen=True, slots=True)
class Report:
    minutes_counted: int
    elapsed_ms: int
    active_ms: int
    p99_us: int | None
    latency_target_us: int
    attainments: tuple[Attainment, ...]
    incidents: tuple[Incident, ...]


def report(windows: Iterable[Window], durability: str, from_ms: int, to_ms: int) -> Report:
    """Report on [from_ms, to_ms). `windows` may reach beyond it, which helps to judge gaps at the edges."""
    target_us = LATENCY_P99_US[durability]
    minutes = judge(windows, from_ms, to_ms)
    elapsed = sum(minute.elapsed_ms for minute in minutes)
    active = sum(minute.active_ms for minute in minutes)
    judged = {
        AVAILABILITY: [minute.measured and minute.active_ms == minute.elapsed_ms for minute in minutes],
        THROUGHPUT: [minute.measured and minute.throttled_within_sla_entries == 0 for minute in minutes],
        LATENCY: [minute.measured and (minute.p99_us or 0) <= target_us for minute in minutes],
    }
    attainments, incidents = [], []
    for clause, goods in judged.items():
        good = sum(goods)
        share, whole = (active, elapsed) if clause is AVAILABILITY else (good, len(goods))
        attained = share * PPM // whole if whole else None
        attainments.append(Attainment(clause, attained, good, len(goods) - good))
        incidents += _incidents(clause, minutes, goods, target_us)
    merged = histogram.merge(minute.latency for minute in minutes)
    return Report(
        len(minutes),
        elapsed,
        active,
        histogram.quantile_us(merged, 990),
        target_us,
        tuple(attainments),
        tuple(sorted(incidents, key=lambda incident: incident.start_s)),
    )


def judge(windows: Iterable[Window], from_ms: int, to_ms: int) -> list[Minute]:
    """Every minute that overlaps [from_ms, to_ms) by at least telemetry's resolution."""
    heads: dict[int, list[Window]] = defaultdict(list)
    for window in windows:
        if window.is_head:
            heads[window.window_start_s].append(window)
    quiet = list(_quiet_gaps(heads))
    minutes = []
    for start_ms in range(from_ms // WINDOW_MS * WINDOW_MS, to_ms, WINDOW_MS):
        elapsed = min(start_ms + WINDOW_MS, to_ms) - max(start_ms, from_ms)
        if elapsed < RESOLUTION_MS:
            continue
        start_s = start_ms // 1_000
        found = heads.get(start_s, [])
        idle = not found and any(after < start_s < before for after, before in quiet)
        active = elapsed if idle else min(elapsed, sum(window.active_ms for window in found))
        if found and active >= elapsed - RESOLUTION_MS:
            active = elapsed
        minutes.append(
            Minute(
                start_s,
                elapsed,
                active,
                bool(found) or idle,
                sum(window.throttled_within_sla_entries for window in found),
                histogram.merge(window.latency_us for window in found),
            )
        )
    return minutes


def _quiet_gaps(heads: dict[int, list[Window]]) -> Iterator[tuple[int, int]]:
    """Pairs of minutes between which the same head was there and the log did not grow."""
    for before_s, after_s in pairwise(sorted(heads)):
        if after_s == before_s + WINDOW_S:
            continue
        for last in heads[before_s]:
            for first in heads[after_s]:
                same = (last.server_id, last.incarnation, last.epoch) == (
                    first.server_id,
                    first.incarnation,
                    first.epoch,
                )
                if same and first.first_committed_entries == last.committed_entries:
                    yield before_s, after_s


def _incidents(clause: Clause, minutes: list[Minute], goods: list[bool], target_us: int) -> list[Incident]:
    runs: list[list[Minute]] = []
    for minute, good in zip(minutes, goods, strict=True):
        if good:
            continue
        if runs and runs[-1][-1].start_s + WINDOW_S == minute.start_s:
            runs[-1].append(minute)
        else:
            runs.append([minute])
    return [
        Incident(clause.name, run[0].start_s, run[-1].start_s + WINDOW_S, _reason(clause, run, target_us))
        for run in runs
    ]


def _reason(clause: Clause, run: list[Minute], target_us: int) -> str:
    unmeasured = sum(not minute.measured for minute in run)
    missing = f"; no telemetry in {unmeasured} of {len(run)} minutes" if unmeasured else ""
    if unmeasured == len(run):
        return "No telemetry, and the group cannot show that it had no traffic."
    if clause is AVAILABILITY:
        lost_ms = sum(minute.elapsed_ms - minute.active_ms for minute in run)
        return f"Appends were not accepted for {lost_ms / 1000:.1f} s{missing}."
    if clause is THROUGHPUT:
        throttled = sum(minute.throttled_within_sla_entries for minute in run)
        return f"{throttled} entries were throttled although within the reservation{missing}."
    worst = max(minute.p99_us or 0 for minute in run)
    return f"p99 of commit latency was up to {worst / 1000:.1f} ms, above {target_us / 1000:.0f} ms{missing}."
