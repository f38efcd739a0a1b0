"""Usage of a period from windows: for each log, a telescoping sum equal to its committed entries. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from quorate_api.telemetry import histogram
from quorate_api.telemetry.windows import WINDOW_S, Window


@dataclass(frozen=True, slots=True)
class Count:
    """Counters of one log in one minute: the greatest committed ones, and reads in sum."""

    start_s: int
    log_epoch: int
    committed_entries: int
    committed_bytes: int
    read_entries: int
    read_bytes: int


@dataclass(frozen=True, slots=True)
class Used:
    """Use of a minute."""

    start_s: int
    committed_entries: int
    committed_bytes: int
    read_entries: int
    read_bytes: int


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
    by_minute: dict[int, list[Count]] = defaultdict(list)
    for count in counts:
        by_minute[count.start_s].append(count)
    found = []
    for start_s in sorted(by_minute):
        was = _total(logs)
        logs = reached(by_minute[start_s], logs)
        now = _total(logs)
        reads = sum(count.read_entries for count in by_minute[start_s])
        read_bytes = sum(count.read_bytes for count in by_minute[start_s])
        found.append(Used(start_s, now[0] - was[0], now[1] - was[1], reads, read_bytes))
    return found


def reached(counts: Iterable[Count], before: Mapping[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
    """The greatest committed entries and bytes of each log after these minutes. `before` as for `used`."""
    found = dict(before)
    for count in counts:
        entries, size = found.get(count.log_epoch, (0, 0))
        found[count.log_epoch] = (max(entries, count.committed_entries), max(size, count.committed_bytes))
    return found


def measured(windows: Iterable[Window], before: Mapping[int, tuple[int, int]]) -> list[Measured]:
    """One row for each minute that has a window, oldest first. `before` as for `used`."""
    by_minute: dict[int, list[Window]] = defaultdict(list)
    for window in windows:
        by_minute[window.window_start_s].append(window)
    counts = [_count(window) for group in by_minute.values() for window in group]
    found = []
    for minute in used(counts, before):
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


def _total(logs: Mapping[int, tuple[int, int]]) -> tuple[int, int]:
    return sum(entries for entries, _ in logs.values()), sum(size for _, size in logs.values())


def minute_floor_s(at_s: float) -> int:
    return int(at_s // WINDOW_S) * WINDOW_S
