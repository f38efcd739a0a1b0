"""A prober's view of servers, as it tells it of minutes. Pure. Times are Unix time in milliseconds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from quorate_prober import limits

MINUTE_MS = 60_000
Time = tuple[int, int]  # [from, to)


@dataclass(frozen=True)
class Minute:
    """`failed`: times without an answer, of those servers that had any."""

    start_ms: int
    watched: tuple[int, ...]
    failed: dict[int, list[Time]]


@dataclass
class _Server:
    watched_since_ms: int
    failing_since_ms: int | None = None
    misses: int = 0
    outages: list[Time] = field(default_factory=list)

    @property
    def is_failing(self) -> bool:
        return self.misses >= limits.MISSES_MIN

    def failed(self, start_ms: int, now_ms: int) -> Iterator[Time]:
        """The parts of outages in the minute."""
        open_ = [(self.failing_since_ms, now_ms)] if self.is_failing and self.failing_since_ms is not None else []
        for from_ms, to_ms in [*self.outages, *open_]:
            begin_ms, end_ms = max(from_ms, start_ms), min(to_ms, start_ms + MINUTE_MS)
            if begin_ms < end_ms:
                yield begin_ms, end_ms


class Book:
    """Knocks at one server follow one another."""

    def __init__(self) -> None:
        self._servers: dict[int, _Server] = {}
        self._standstills: list[Time] = []

    @property
    def servers(self) -> frozenset[int]:
        return frozenset(self._servers)

    def watch(self, servers: Iterable[int], now_ms: int) -> None:
        """From now on these servers are watched, and no others."""
        wanted = set(servers)
        for gone in self._servers.keys() - wanted:
            del self._servers[gone]
        for new in wanted - self._servers.keys():
            self._servers[new] = _Server(now_ms)

    def answered(self, server: int, at_ms: int) -> None:
        known = self._servers.get(server)
        if known is None:
            return
        if known.is_failing and known.failing_since_ms is not None and known.failing_since_ms < at_ms:
            known.outages.append((known.failing_since_ms, at_ms))
        known.failing_since_ms, known.misses = None, 0

    def missed(self, server: int, begun_ms: int) -> bool:
        """A knock that began at `begun_ms` had no answer. Returns whether the server fails from now on."""
        known = self._servers.get(server)
        if known is None or any(begun_ms < to_ms for _, to_ms in self._standstills[-1:]):
            return False
        if known.failing_since_ms is None:
            known.failing_since_ms = begun_ms
        known.misses += 1
        return known.misses == limits.MISSES_MIN

    def stood_still(self, from_ms: int, to_ms: int) -> None:
        """The prober itself did not run. What it missed then is nobody's fault."""
        self._standstills.append((from_ms, to_ms))
        for known in self._servers.values():
            known.failing_since_ms, known.misses = None, 0

    def minute(self, start_ms: int, now_ms: int) -> Minute:
        """A minute that is over, and has settled."""
        end_ms = start_ms + MINUTE_MS
        if any(from_ms < end_ms and to_ms > start_ms for from_ms, to_ms in self._standstills):
            return Minute(start_ms, (), {})
        watched: list[int] = []
        failed: dict[int, list[Time]] = {}
        for server, known in sorted(self._servers.items()):
            if known.watched_since_ms > start_ms:
                continue
            times = list(known.failed(start_ms, now_ms))
            if len(times) <= limits.FAILURES_MAX:
                watched.append(server)
                failed |= {server: times} if times else {}
        return Minute(start_ms, tuple(watched), failed)

    def forget(self, before_ms: int) -> None:
        """Minutes that begin earlier are asked for no more."""
        self._standstills = [time for time in self._standstills if time[1] > before_ms]
        for known in self._servers.values():
            known.outages = [time for time in known.outages if time[1] > before_ms]
