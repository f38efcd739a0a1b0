"""The next address to dial. Pure. All endpoints of the handle in turn, head first; redirects at once. Each pass over
the endpoints begins with a new handle, and a wait that grows exponentially with full jitter."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from quorate import limits


class Dial(NamedTuple):
    address: str
    delay_s: float


class Refresh(NamedTuple):
    """Ask for a new handle, then ask the route again."""

    delay_s: float


class Route:
    """`random` gives numbers in [0, 1). `now` is any monotonic clock in seconds."""

    def __init__(self, addresses: Sequence[str], can_refresh: bool, random: Callable[[], float]) -> None:
        assert addresses, "a handle has endpoints"
        self._addresses = list(addresses)
        self._remaining: deque[str] = deque(addresses)
        self._can_refresh = can_refresh
        self._random = random
        self._redirect: str | None = None
        self._redirects = 0
        self._attempt = 0
        self._delay_s = 0.0
        self._delay_min_s = 0.0
        self._wants_refresh = False
        self._progressed = False
        self._refreshed_at = float("-inf")

    def next(self, now: float) -> Dial | Refresh:
        if self._redirect is not None:
            address, self._redirect = self._redirect, None
            return Dial(address, self._take_delay())
        if not self._remaining:
            self._end_pass()
        if self._wants_refresh and self._can_refresh and now - self._refreshed_at >= limits.REFRESH_INTERVAL_S_MIN:
            self._wants_refresh = False
            self._refreshed_at = now
            return Refresh(self._take_delay())
        return Dial(self._remaining.popleft(), self._take_delay())

    def redirect(self, address: str) -> None:
        """A replica named the head. Without an address the pass continues."""
        if not address:
            return
        self._redirect = address
        self._redirects += 1
        if self._redirects > limits.REDIRECTS_AT_ONCE_MAX:
            self._back_off()

    def want_handle(self) -> None:
        """The handle seems out of date: the next step is a refresh, if possible."""
        self._wants_refresh = True

    def wait_at_least(self, delay_s: float) -> None:
        """Wait as a server asked before the next dial."""
        self._delay_min_s = max(self._delay_min_s, min(delay_s, limits.BACKOFF_MAX_S))

    def replace(self, addresses: Sequence[str]) -> None:
        """A new handle has arrived."""
        assert addresses, "a handle has endpoints"
        self._addresses = list(addresses)
        self._remaining = deque(addresses)

    def attached(self, address: str) -> None:
        """The connection is attached. When it breaks, its address is dialled first."""
        self._redirect = None
        self._wants_refresh = False
        self._delay_s = self._delay_min_s = 0.0
        self._progressed = False
        self._remaining = deque([address, *(other for other in self._addresses if other != address)])

    def progressed(self) -> None:
        """The connection has answered: waits start small again."""
        self._progressed = True
        self._attempt = self._redirects = 0

    def lost(self) -> None:
        """The attached connection broke. If it never answered, its address is dialled again only after a wait."""
        if not self._progressed:
            self._back_off()

    def avoid(self, address: str) -> None:
        """Dial the others before this one."""
        self._remaining = deque(other for other in self._remaining if other != address)

    def _end_pass(self) -> None:
        self._remaining = deque(self._addresses)
        self._wants_refresh = True
        self._back_off()

    def _back_off(self) -> None:
        ceiling = min(limits.BACKOFF_MAX_S, limits.BACKOFF_BASE_S * 2.0 ** min(self._attempt, 30))
        self._attempt += 1
        self._delay_s = ceiling * self._random()

    def _take_delay(self) -> float:
        delay_s = max(self._delay_s, self._delay_min_s)
        self._delay_s = self._delay_min_s = 0.0
        return delay_s


class OneAddress(Route):
    """The route to one replica: it goes nowhere else, and leaves handles to other links."""

    def __init__(self, address: str, random: Callable[[], float]) -> None:
        super().__init__([address], False, random)

    def redirect(self, address: str) -> None:
        pass

    def replace(self, addresses: Sequence[str]) -> None:
        pass
