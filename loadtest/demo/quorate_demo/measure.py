"""Latency, rate and the gap at a failover, from a replay's batches. Pure.

Times are microseconds since the replay's begin. Latency counts from when an entry was *due*, not from when it was sent.
So a stall is not hidden by the load that it holds back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from quorate_demo.trace import Schedule
from quorate_demo.verdict import Run, merge

FAILOVER_WINDOW_US = 10_000_000  # a gap that begins later has another cause


@dataclass(frozen=True)
class Batch:
    """Entries `first`… of one acknowledged append, and when the acknowledgement came."""

    first: int
    count: int
    offset: int
    acked_us: int


@dataclass(frozen=True)
class Latency:
    p50_us: int
    p99_us: int


def acked_runs(batches: list[Batch]) -> list[Run]:
    return merge(Run(batch.offset, batch.first, batch.count) for batch in batches)


def latency(batches: Iterable[Batch], schedule: Schedule, without_us: range | None = None) -> Latency:
    """Over every entry; `without_us`: leave out entries that were due in this range."""
    values: list[int] = []
    for batch in batches:
        for number in range(batch.first, batch.first + batch.count):
            due_us = int(schedule.due_at_s(number) * 1e6)
            if without_us is None or not without_us.start <= due_us < without_us.stop:
                values.append(batch.acked_us - due_us)
    if not values:
        return Latency(0, 0)
    values.sort()
    return Latency(values[len(values) // 2], values[min(len(values) - 1, len(values) * 99 // 100)])


def rate_per_s(batches: list[Batch]) -> int:
    """Entries acknowledged, over the time from the replay's begin to the last acknowledgement."""
    if not batches:
        return 0
    return round(sum(batch.count for batch in batches) * 1e6 / max(batch.acked_us for batch in batches))


def failover_gap_ms(batches: list[Batch], kill_us: int) -> int:
    """The longest time without any acknowledgement, of those around and soon after the kill."""
    moments = sorted({batch.acked_us for batch in batches})
    window = range(kill_us, kill_us + FAILOVER_WINDOW_US)
    gaps = [after - before for before, after in pairwise(moments) if after > window.start and before < window.stop]
    return round(max(gaps, default=0) / 1000)
