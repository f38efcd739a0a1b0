"""Usage of a period from windows: for each log, a telescoping sum equal to its committed entries. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from quorate_api.telemetry import histogram
from quorate_api.telemetry.windows import WINDOW_S, Window


class Count(NamedTuple):
    """Counters of one log in one minute: the greatest committed ones, and reads in sum. A week has ten thousand."""

    start_s: int
    log_epoch: int
    committed_entries: int
    committed_bytes: int
    read_entries: int
    read_bytes: int


class Used(NamedTuple):
    """Use of a minute."""

    start_s: int
    committed_entries: int
    committed_bytes: int
    read_entries: int
    read_bytes: int


_NOTHING = Used(-1, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Measured:
    """Rates and latencies of a minute, for charts."""

    start_s: int
    committed_entries: int
    offered_entries: int
    throttled_entries: int
    p50_us: int | None
    p99_us: int | None


def used(counts: Iterable[Count], before: Mapping[int, tuple[int, int]]) -> list[Used]:
    """One row for each minute that has a count, oldest first.

    `before`: the greatest committed entries and bytes of each log before the first minute, by `log_epoch`. A minute's
    share is its rise over the greatest counters seen so far, so the shares add up to the whole.
    """
    logs = dict(before)
    found: list[Used] = []
    minute = _NOTHING
    for start_s, log_epoch, entries, size, reads, read_bytes in sorted(counts):
        had_entries, had_size = logs.get(log_epoch, (0, 0))
        rise, size_rise = max(0, entries - had_entries), max(0, size - had_size)
        logs[log_epoch] = (had_entries + rise, had_size + size_rise)
        if start_s == minute.start_s:
            # Another log of the same minute.
            minute = Used(
                start_s,
                minute.committed_entries + rise,
                minute.committed_bytes + size_rise,
                minute.read_entries + reads,
                minute.read_bytes + read_bytes,
            )
            found[-1] = minute
        else:
            minute = Used(start_s, rise, size_rise, reads, read_bytes)
            found.append(minute)
    return found


def summed(parts: Sequence[list[Used]]) -> list[Used]:
    """The use of several groups together, minute by minute."""
    if len(parts) == 1:
        return parts[0]
    sums: dict[int, Used] = {}
    for minute in (minute for part in parts for minute in part):
        had = sums.get(minute.start_s)
        sums[minute.start_s] = minute if had is None else Used(minute.start_s, *_added(had[1:], minute[1:]))
    return [sums[start_s] for start_s in sorted(sums)]


def _added(one: Sequence[int], other: Sequence[int]) -> list[int]:
    return [each + more for each, more in zip(one, other, strict=True)]


def reached(counts: Iterable[Count], before: Mapping[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
    """The greatest committed entries and bytes of each log after these minutes. `before` as for `used`."""
    found = dict(before)
    for count in counts:
        found[count.log_epoch] = _greatest(found.get(count.log_epoch, (0, 0)), count)
    return found


def _greatest(was: tuple[int, int], count: Count) -> tuple[int, int]:
    return max(was[0], count.committed_entries), max(was[1], count.committed_bytes)


def measured(parts: Sequence[tuple[Sequence[Window], Mapping[int, tuple[int, int]]]]) -> list[Measured]:
    """One row for each minute that has a window, oldest first. `parts`: windows of a group, or of each of its
    partitions, with `before` as for `used`."""
    by_minute: dict[int, list[Window]] = defaultdict(list)
    for window in (window for windows, _ in parts for window in windows):
        by_minute[window.window_start_s].append(window)
    found = []
    for minute in summed([used(map(_count, windows), before) for windows, before in parts]):
        group = by_minute[minute.start_s]
        latency = histogram.merge(window.latency_us for window in group if window.is_head)
        found.append(
            Measured(
                start_s=minute.start_s,
                committed_entries=minute.committed_entries,
                offered_entries=sum(window.offered_entries for window in group),
                throttled_entries=sum(window.throttled_entries for window in group),
                p50_us=histogram.quantile_us(latency, 500),
                p99_us=histogram.quantile_us(latency, 990),
            )
        )
    return found


def _count(window: Window) -> Count:
    return Count(
        window.window_start_s,
        window.log_epoch,
        window.committed_entries,
        window.committed_bytes,
        window.read_entries,
        window.read_bytes,
    )


def minute_floor_s(at_s: float) -> int:
    return int(at_s // WINDOW_S) * WINDOW_S
