"""A client's sending rate: token buckets of the rate that the head reports. Pure. sdk/contract/pacing.md"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Tokens = tuple[int, int, int]
"""Thousandths of tokens of CPU, network and storage."""

HEADROOM = 1.0 / 16.0
"""The client sends this share more than the reported rate. A head reports a rate again only after a change of more than
a twentieth, so the true rate may be higher. A head also grants burst capacity only to clients that send more than they
have."""

BATCH_S = 0.1
"""A batch takes no more entries of single appends than pass in this time. A larger one would leave the head's bucket in
debt, for which others wait."""

_ROUNDING_S = 1e-7
"""A shorter wait comes from rounded sums only."""


@dataclass(frozen=True, slots=True)
class Charges:
    """The head's charges for batches, and the rates that fill its buckets, from the handle."""

    rate_per_s: int
    """The rate at which the buckets get `tokens_per_s`."""
    tokens_per_s: Tokens
    entry: Tokens
    byte: Tokens
    full_entries: int
    """A batch of fewer entries costs `lacking` for each one that it lacks."""
    lacking: Tokens

    @classmethod
    def parse(cls, source: Mapping[str, Any]) -> Charges:
        cost, short = source["cost"], source["short_batch"]
        found = cls(
            int(source["rate_per_s"]),
            _tokens(source["tokens_per_s_milli"]),
            _tokens(cost["fixed_milli"]),
            _tokens(cost["per_byte_milli"]),
            int(short["entries"]),
            _tokens(short["lacking_milli"]),
        )
        if found.rate_per_s < 1:
            raise ValueError("its charges are for no rate")
        return found

    def of(self, entry_count: int, entry_bytes: int) -> Tokens:
        """The charge of a batch: `entry_bytes` are its entries' bytes together."""
        lacks = max(0, self.full_entries - entry_count)
        cpu, network, storage = (
            fixed * entry_count + byte * entry_bytes + lacking * lacks
            for fixed, byte, lacking in zip(self.entry, self.byte, self.lacking, strict=True)
        )
        return cpu, network, storage


def _tokens(source: Any) -> Tokens:
    cpu, network, storage = (int(each) for each in source)
    if min(cpu, network, storage) < 0:
        raise ValueError("its charges are negative")
    return cpu, network, storage


class Pacing:
    """A bucket for each resource, as at the head. Each holds one second of its rate, and starts full.

    `charges` None: they are not known, and no append waits. `request_size_bytes`: of the SLA; 0: not known."""

    def __init__(self, charges: Charges | None, request_size_bytes: int = 0) -> None:
        self.charges = charges
        self.request_size_bytes = request_size_bytes
        self.batch_entries_max: int | None = None
        """Entries of single appends that one batch takes; None: as many as fit."""
        self._reported_per_s = 0
        self._rates = [0.0, 0.0, 0.0]
        self._levels = [0.0, 0.0, 0.0]
        self._updated = 0.0
        self._hinted = False

    def renew(self, charges: Charges | None, request_size_bytes: int) -> None:
        """Take those of a newer handle. The buckets are full where charges have changed."""
        self.request_size_bytes = request_size_bytes
        if charges != self.charges:
            self.charges = charges
            self.batch_entries_max = None
            self._reported_per_s = 0

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

    def cost(self, entry_count: int, entry_bytes: int) -> Tokens:
        """Tokens of a batch, as many as the head takes."""
        return (0, 0, 0) if self.charges is None else self.charges.of(entry_count, entry_bytes)

    def seconds(self, entry_count: int, entry_bytes: int, reported_per_s: int) -> float:
        """Time in which so many entries pass at a reported rate, as one batch."""
        if self.charges is None or reported_per_s == 0:
            return 0.0
        cost = zip(self.charges.of(entry_count, entry_bytes), self.charges.tokens_per_s, strict=True)
        share = reported_per_s / self.charges.rate_per_s
        return max((milli / (rate * share) for milli, rate in cost if rate > 0), default=0.0)

    def set_rate(self, reported_per_s: int, now: float) -> None:
        """Set the rate. 0: not known, no append waits. Tokens are kept, up to a second of the new rate."""
        if reported_per_s == self._reported_per_s or self.charges is None:
            return
        self._refill(now)
        share = reported_per_s * (1.0 + HEADROOM) / self.charges.rate_per_s
        first = self._reported_per_s == 0
        self._rates = [milli * share for milli in self.charges.tokens_per_s]
        levels = zip(self._levels, self._rates, strict=True)
        self._levels = [rate if first else min(level, rate) for level, rate in levels]
        self._reported_per_s = reported_per_s
        self.batch_entries_max = self._batch_entries_max() if reported_per_s else None

    def take(self, now: float, cost: Tokens) -> float:
        """Take the cost and return 0, or return the seconds until it can be taken. A batch larger than a bucket
        passes when the bucket is full and leaves it in debt, as at the head."""
        if self._reported_per_s == 0 or self.charges is None:
            return 0.0
        self._refill(now)
        wait_s = 0.0
        for milli, rate, level in zip(cost, self._rates, self._levels, strict=True):
            if rate > 0.0:
                wait_s = max(wait_s, (min(milli, rate) - level) / rate)
        if wait_s > _ROUNDING_S:
            return wait_s
        self._levels = [level - milli for level, milli in zip(self._levels, cost, strict=True)]
        return 0.0

    def _batch_entries_max(self) -> int:
        assert self.charges is not None, "a rate is set"
        size = self.request_size_bytes
        each = [fixed + byte * size for fixed, byte in zip(self.charges.entry, self.charges.byte, strict=True)]
        passing = [BATCH_S * rate / cost for rate, cost in zip(self._rates, each, strict=True) if cost > 0]
        return max(1, self.charges.full_entries, int(min(passing, default=0)))

    def _refill(self, now: float) -> None:
        """Add the elapsed time's tokens. A clock that went back adds none."""
        elapsed = max(0.0, now - self._updated)
        self._updated = max(self._updated, now)
        self._levels = [
            min(level + elapsed * rate, rate) for level, rate in zip(self._levels, self._rates, strict=True)
        ]
