"""A client's sending rate: a token bucket of the rate that the head reports. Pure. sdk/contract/pacing.md"""

from __future__ import annotations

HEADROOM = 1.0 / 16.0
"""The client sends this share more than the reported rate. A head reports a rate again only after a change of more than
a twentieth, so the true rate may be higher. A head also grants burst capacity only to clients that send more than they
have."""

_ROUNDING = 1e-6
"""Tokens. A smaller shortage comes from rounded sums only."""


class Pacing:
    """A token is a request of the declared size. The bucket holds one second of its rate, and starts full.

    `request_size_bytes` 0: the size is not known, and no append waits."""

    def __init__(self, request_size_bytes: int) -> None:
        self.request_size_bytes = request_size_bytes
        self._reported_per_s = 0
        self._rate = 0.0
        self._level = 0.0
        self._updated = 0.0
        self._hinted = False

    def hint(self, entry_count: int, entry_bytes: int) -> str | None:
        """A word to the caller about a batch that leaves, the first time that its entries exceed the declared size."""
        size = self.request_size_bytes
        if self._hinted or size <= 0 or entry_bytes <= size * entry_count:
            return None
        self._hinted = True
        each = entry_bytes // entry_count
        return (
            f"entries of {each} bytes exceed the group's declared request size of {size}: each takes more of its rate"
            " than one request. Resize the group to the size of its entries for a rate that holds."
        )

    def cost(self, entry_count: int, entry_bytes: int) -> float:
        """Tokens of a batch, never more than its head charges. The head charges a part for each entry and a part for
        each byte, and a token covers both."""
        if self.request_size_bytes <= 0:
            return 0.0
        return min(float(entry_count), entry_bytes / self.request_size_bytes)

    def requests(self, entry_count: int, entry_bytes: int) -> float:
        """Requests of the declared size that these entries are, at most: a head charges larger entries more."""
        if self.request_size_bytes <= 0:
            return 0.0
        return max(float(entry_count), entry_bytes / self.request_size_bytes)

    def set_rate(self, reported_per_s: int, now: float) -> None:
        """Set the rate. 0: not known, no append waits. Tokens are kept, up to a second of the new rate."""
        if reported_per_s == self._reported_per_s:
            return
        self._refill(now)
        rate = reported_per_s * (1.0 + HEADROOM)
        self._level = min(self._level, rate) if self._rate > 0.0 else rate
        self._reported_per_s, self._rate = reported_per_s, rate

    def take(self, now: float, cost: float) -> float:
        """Take the cost and return 0, or return the seconds until it can be taken. A batch larger than the bucket
        passes when the bucket is full and leaves it in debt, as at the head."""
        if self._rate <= 0.0 or self.request_size_bytes <= 0:
            return 0.0
        self._refill(now)
        missing = min(cost, self._rate) - self._level
        if missing > _ROUNDING:
            return missing / self._rate
        self._level -= cost
        return 0.0

    def _refill(self, now: float) -> None:
        """Add the elapsed time's tokens. A clock that went back adds none."""
        elapsed = max(0.0, now - self._updated)
        self._updated = max(self._updated, now)
        self._level = min(self._level + elapsed * self._rate, self._rate)
