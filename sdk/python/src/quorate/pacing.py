"""How fast a client sends: a token bucket of the rate that its group's head tells, pure. sdk/contract/pacing.md"""

from __future__ import annotations

ABOVE_TOLD = 1.0 / 16.0
"""So much more than was told is sent. A head tells a rate anew when it has changed by more than a twentieth, so it may
let pass a twentieth more than a client knows of; and it lends to who wants more than it has, which it sees only of who
sends more."""

_ROUNDING = 1e-6
"""Tokens. Less is missing only because sums are rounded."""


class Pacing:
    """A token is a request of the declared size (`request_size_bytes`; 0: not known, and nothing waits). The bucket
    holds one second of its rate, and starts full."""

    def __init__(self, request_size_bytes: int) -> None:
        self.request_size_bytes = request_size_bytes
        self._told_per_s = 0
        self._rate = 0.0
        self._level = 0.0
        self._updated = 0.0

    def cost(self, entry_count: int, entry_bytes: int) -> float:
        """Tokens of a batch, never more than its head takes: that charges a part for each entry and a part for each
        byte, and both for each token."""
        if self.request_size_bytes <= 0:
            return 0.0
        return min(float(entry_count), entry_bytes / self.request_size_bytes)

    def set_rate(self, told_per_s: int, now: float) -> None:
        """A rate of 0 is not known, and nothing waits. What there is is kept, up to the new rate's second."""
        if told_per_s == self._told_per_s:
            return
        self._refill(now)
        rate = told_per_s * (1.0 + ABOVE_TOLD)
        self._level = min(self._level, rate) if self._rate > 0.0 else rate
        self._told_per_s, self._rate = told_per_s, rate

    def take(self, now: float, cost: float) -> float:
        """Take the cost, or say in how many seconds it can be taken: 0 when it was. What costs more than the bucket
        holds passes when it is full, and leaves it in debt, as at the head."""
        if self._rate <= 0.0 or self.request_size_bytes <= 0:
            return 0.0
        self._refill(now)
        missing = min(cost, self._rate) - self._level
        if missing > _ROUNDING:
            return missing / self._rate
        self._level -= cost
        return 0.0

    def _refill(self, now: float) -> None:
        """A clock that went back adds nothing."""
        elapsed = max(0.0, now - self._updated)
        self._updated = max(self._updated, now)
        self._level = min(self._level + elapsed * self._rate, self._rate)
