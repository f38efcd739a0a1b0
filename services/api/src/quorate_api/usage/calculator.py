"""Usage of a period from windows: for each log, a telescoping sum equal to its committed entries. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from quorate_api.telemetry import histogram
from quorate_api.telemetry.windows import WINDOW_S, Window


@dataclass(frozen=True, slots=True)
class Minute:
    start_s: int
    committed_entries: int
    committed_bytes: int
    read_entries: int
    offered_entries: int
    throttled_entries: int
    p50_us: int | None
    p99_us: int | None


def minutes(windows: Iterable[Window], before: Mapping[int, tuple[int, int]]) -> list[Minute]:
    """One row for each minute that has a window, oldest first.

    `before`: the greatest committed entries and bytes of each log before the first minute, by `log_epoch`. A minute's
    share is its rise over the greatest counters seen so far, so the shares add up to the whole.
    """
    reached = dict(before)
    by_minute: dict[int, list[Window]] = defaultdict(list)
    for window in windows:
        by_minute[window.window_start_s].append(window)
    found = []
    for start_s in sorted(by_minute):
        group = by_minute[start_s]
        was = _total(reached)
        for window in group:
            entries, size = reached.get(window.log_epoch, (0, 0))
            reached[window.log_epoch] = (max(entries, window.committed_entries), max(size, window.committed_bytes))
        now = _total(reached)
        latency = histogram.merge(window.latency_us for window in group if window.is_head)
        found.append(
            Minute(
                start_s=start_s,
                committed_entries=now[0] - was[0],
                committed_bytes=now[1] - was[1],
                read_entries=sum(window.read_entries for window in group),
                offered_entries=sum(window.offered_entries for window in group),
                throttled_entries=sum(window.throttled_entries for window in group),
                p50_us=histogram.quantile_us(latency, 500),
                p99_us=histogram.quantile_us(latency, 990),
            )
        )
    return found


def _total(reached: Mapping[int, tuple[int, int]]) -> tuple[int, int]:
    return sum(entries for entries, _ in reached.values()), sum(size for _, size in reached.values())


def minute_floor_s(at_s: float) -> int:
    return int(at_s // WINDOW_S) * WINDOW_S
