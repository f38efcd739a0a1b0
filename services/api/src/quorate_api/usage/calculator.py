"""Usage of a period from windows: a telescoping sum that equals the log's commit offset exactly. Pure."""

from collections import defaultdict
from collections.abc import Iterable
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


def minutes(windows: Iterable[Window], entries_before: int, bytes_before: int) -> list[Minute]:
    """One row for each minute that has a window, oldest first.

    `entries_before` and `bytes_before` are the greatest committed counters before the first minute: a minute's share
    is by how much it raises the greatest counter seen so far, so the shares add up to the whole.
    """
    by_minute: dict[int, list[Window]] = defaultdict(list)
    for window in windows:
        by_minute[window.window_start_s].append(window)
    found = []
    for start_s in sorted(by_minute):
        group = by_minute[start_s]
        entries = max(entries_before, *(window.committed_entries for window in group))
        size = max(bytes_before, *(window.committed_bytes for window in group))
        latency = histogram.merge(window.latency_us for window in group if window.is_head)
        found.append(
            Minute(
                start_s=start_s,
                committed_entries=entries - entries_before,
                committed_bytes=size - bytes_before,
                read_entries=sum(window.read_entries for window in group),
                offered_entries=sum(window.offered_entries for window in group),
                throttled_entries=sum(window.throttled_entries for window in group),
                p50_us=histogram.quantile_us(latency, 500),
                p99_us=histogram.quantile_us(latency, 990),
            )
        )
        entries_before, bytes_before = entries, size
    return found


def minute_floor_s(at_s: float) -> int:
    return int(at_s // WINDOW_S) * WINDOW_S
