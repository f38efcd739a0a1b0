"""Judged minutes of a group from usage windows: its heads', and those of replicas that owed reads. Pure.

`docs/reference/sla.md` is the contract.

A minute without a head's telemetry is bad, with one exception. The same head (server, incarnation, epoch) reported
before and after it, a day apart at most, had not stood still, and the log had not grown in between. Then the head was
there, and the group had no traffic.

Time in which clients could not reach the head's server is lost as well, by the word of probers.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

from quorate_api.outside.verdict import Unreachable, overlap_ms
from quorate_api.promises.availability import PPM
from quorate_api.sla.targets import PAUSE_MS_MAX, QUIET_PAUSED_MS_MAX, QUIET_S_MAX, RESOLUTION_MS, THROTTLED_PPM_MAX
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
    within_sla_entries: int  # the reservation let them pass, or should have
    p99_us: int | None  # of entries within the reservation; None: no such entry was committed
    target_us: int  # the bound on it
    unreachable_ms: int = 0  # time in which clients could not reach the head's server
    late_read_entries: int = 0
    owed_read_entries: int = 0  # the reservation for reads let them pass, on any replica
    declared: str | None = None  # an operator's reason to count it as bad, whatever was measured
    breaches: tuple[tuple[str, str], ...] = ()  # of clauses that no telemetry measures: name and reason

    @property
    def is_available(self) -> bool:
        return self._counts and self.elapsed_ms - self.active_ms <= PAUSE_MS_MAX

    @property
    def is_unthrottled(self) -> bool:
        appends = self.throttled_within_sla_entries * PPM <= THROTTLED_PPM_MAX * self.within_sla_entries
        reads = self.late_read_entries * PPM <= THROTTLED_PPM_MAX * self.owed_read_entries
        return self._counts and appends and reads

    @property
    def is_timely(self) -> bool:
        return self._counts and (self.p99_us or 0) <= self.target_us

    @property
    def _counts(self) -> bool:
        return self.measured and self.declared is None

    def breached(self, clause: str) -> list[str]:
        """Reasons for which it breaches this clause; none if it kept it."""
        return [reason for name, reason in self.breaches if name == clause]

    @property
    def is_good(self) -> bool:
        """In every clause that telemetry measures."""
        return self.is_available and self.is_unthrottled and self.is_timely


@dataclass(frozen=True, slots=True)
class Judged:
    """Minutes, oldest first, and the commit latencies in them: bucket → count."""

    minutes: list[Minute]
    latency_us: Mapping[int, int]


def judge(
    windows: Iterable[Window], from_ms: int, to_ms: int, target_us_at: Callable[[int], int], outside: Unreachable
) -> Judged:
    """Every minute that overlaps [from_ms, to_ms) by at least telemetry's resolution.

    `target_us_at`: the bound on p99 of commit latency in the minute that begins at a time in seconds. `outside`: times
    in which clients could not reach servers.

    `windows` may reach beyond it. A gap at its edges is judged by the nearest minutes outside that have a
    head's window.
    """
    found_windows = list(windows)
    heads, reads = _heads(found_windows), _owed_reads(found_windows)
    quiet = _quiet_minutes(heads)
    minutes, latencies = [], []
    for start_s, elapsed in counted(from_ms, to_ms):
        found = heads.get(start_s, [])
        idle = quiet.get(start_s)
        start_ms = start_s * 1_000
        bounds = (max(start_ms, from_ms), min(start_ms + WINDOW_MS, to_ms))
        times = ruled(found, *bounds) if idle is None else [Ruled(idle, *bounds, elapsed)]
        cut_ms = unreachable_ms(times, outside)
        latency = histogram.merge(window.judged_us for window in found)
        latencies.append(latency)
        minutes.append(
            Minute(
                start_s,
                elapsed,
                active_ms(times, cut_ms, elapsed),
                bool(found) or idle is not None,
                sum(window.throttled_within_sla_entries for window in found),
                sum(window.within_sla_entries for window in found),
                histogram.quantile_us(latency, 990),
                target_us_at(start_s),
                cut_ms,
                *reads.get(start_s, (0, 0)),
            )
        )
    return Judged(minutes, histogram.merge(latencies))


def _owed_reads(windows: Iterable[Window]) -> Mapping[int, tuple[int, int]]:
    """Entries read within the reservation by the begin of their minute: late ones, and all."""
    found: dict[int, tuple[int, int]] = {}
    for window in windows:
        if window.owed_read_entries:
            late, owed = found.get(window.window_start_s, (0, 0))
            found[window.window_start_s] = (late + window.late_read_entries, owed + window.owed_read_entries)
    return found


def _heads(windows: Iterable[Window]) -> Mapping[int, list[Window]]:
    """Heads' windows by the begin of their minute, but for minutes that begin after that of a later epoch's head.

    A head that is cut off may take itself for the head for long. It commits nothing then, and shows nothing.
    """
    begun_ms: dict[int, int] = {}  # by epoch
    found = [window for window in windows if window.is_head]
    for window in found:
        at_ms = window.from_ms if window.to_ms else window.window_start_s * 1_000
        begun_ms[window.epoch] = min(at_ms, begun_ms.get(window.epoch, at_ms))
    ended_ms: dict[int, float] = {}
    later_ms = inf
    for epoch in sorted(begun_ms, reverse=True):
        ended_ms[epoch] = later_ms
        later_ms = min(later_ms, begun_ms[epoch])
    heads: dict[int, list[Window]] = defaultdict(list)
    for window in found:
        if window.window_start_s * 1_000 <= ended_ms[window.epoch]:
            heads[window.window_start_s].append(window)
    return heads


@dataclass(frozen=True, slots=True)
class Ruled:
    """A time in which a server's replica was the head, by its own word, and how much of it appends were accepted."""

    server_id: int
    from_ms: int
    to_ms: int
    accepted_ms: int


def ruled(heads: Sequence[Window], from_ms: int, to_ms: int) -> list[Ruled]:
    """The times of heads in [from_ms, to_ms).

    A head's time ends where that of a later head begins: from then on it could not commit. Time that a head neither
    counted as active nor as paused, as its machine stood still, is lost.
    """
    if not all(head.to_ms for head in heads):
        # Servers of earlier versions say how long, and not when.
        active = min(to_ms - from_ms, sum(head.active_ms for head in heads))
        return [Ruled(heads[0].server_id, from_ms, to_ms, active)]
    found = []
    for head in sorted(heads, key=lambda each: (each.epoch, each.from_ms, each.to_ms), reverse=True):
        begin_ms, end_ms = max(head.from_ms, from_ms), min(head.to_ms, to_ms)
        if begin_ms < end_ms:
            lost_ms = max(0, head.to_ms - head.from_ms - head.active_ms)
            found.append(Ruled(head.server_id, begin_ms, end_ms, max(0, end_ms - begin_ms - lost_ms)))
        to_ms = min(to_ms, head.from_ms)
    return found


def active_ms(times: Iterable[Ruled], cut_ms: int, elapsed_ms: int) -> int:
    """Time of a minute in which appends were accepted, and clients could reach the head.

    `cut_ms`: the time in which they could not. Nobody knows when heads lost time: it may have been then. The longer one
    counts.
    """
    return min(sum(time.accepted_ms for time in times), elapsed_ms - cut_ms)


def unreachable_ms(times: Iterable[Ruled], outside: Unreachable) -> int:
    return sum(overlap_ms(outside.get(time.server_id, ()), time.from_ms, time.to_ms) for time in times)


def counted(from_ms: int, to_ms: int) -> Iterator[tuple[int, int]]:
    """Each minute that overlaps [from_ms, to_ms) by at least telemetry's resolution: its begin, and that overlap."""
    for start_ms in range(from_ms // WINDOW_MS * WINDOW_MS, to_ms, WINDOW_MS):
        elapsed_ms = min(start_ms + WINDOW_MS, to_ms) - max(start_ms, from_ms)
        if elapsed_ms >= RESOLUTION_MS:
            yield start_ms // 1_000, elapsed_ms


def _quiet_minutes(heads: Mapping[int, list[Window]]) -> dict[int, int]:
    """Minutes without a window during which the same head was there and the log did not grow, with its server."""
    found: dict[int, int] = {}
    for after_s, before_s, server in _quiet_gaps(heads):
        found |= dict.fromkeys(range(after_s + WINDOW_S, before_s, WINDOW_S), server)
    return found


def _quiet_gaps(heads: Mapping[int, list[Window]]) -> Iterator[tuple[int, int, int]]:
    """The last minute before a gap, the first one after it, and the server."""
    for before_s, after_s in pairwise(sorted(heads)):
        if not WINDOW_S < after_s - before_s <= QUIET_S_MAX:
            continue
        for last in heads[before_s]:
            for first in heads[after_s]:
                same = (last.server_id, last.incarnation, last.epoch) == (
                    first.server_id,
                    first.incarnation,
                    first.epoch,
                )
                # A head that stood still leaves a gap as well.
                was_up = last.paused_ms <= QUIET_PAUSED_MS_MAX and first.paused_ms <= QUIET_PAUSED_MS_MAX
                if same and was_up and first.first_committed_entries == last.committed_entries:
                    yield before_s, after_s, last.server_id
