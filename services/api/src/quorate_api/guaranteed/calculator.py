"""The cost of guarantees. Pure, in integers."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from uuid import UUID

from quorate_api.pricing.prices import PriceList

_PER_TOKENS = 1_000_000


@dataclass(frozen=True, slots=True)
class Change:
    """A confirmed change of a project's guarantee. 0 tokens: it has none from then on, or one that shares nothing."""

    project_id: UUID
    project_name: str
    since: datetime
    hourly_micros: int
    shared_tokens_per_s: int


@dataclass(frozen=True, slots=True)
class Period:
    """A time in which a project had a guarantee."""

    project_id: UUID
    project_name: str
    start: datetime
    end: datetime | None  # None: it goes on
    hourly_micros: int
    shared_tokens_per_s: int

    def seconds(self, start: datetime, at: datetime) -> int:
        """Whole seconds of it from `start` until `at`. Months that follow one another add up."""
        begin, end = max(self.start, start), at if self.end is None else min(self.end, at)
        return max(0, int(end.timestamp()) - int(begin.timestamp()))

    @property
    def words(self) -> str:
        return f"Guarantee: {self.shared_tokens_per_s:,} tokens/s for all groups"


def periods(changes: Sequence[Change]) -> list[Period]:
    """`changes` of one project, oldest first. Times without shared tokens cost nothing, and are left out."""
    ends = [later.since for _, later in pairwise(changes)]
    found = [
        Period(
            change.project_id, change.project_name, change.since, end, change.hourly_micros, change.shared_tokens_per_s
        )
        for change, end in zip(changes, [*ends, None], strict=True)
    ]
    return [period for period in found if period.shared_tokens_per_s > 0]


def hourly_micros(shared_tokens_per_s: int, price_list: PriceList) -> int:
    """Rounded up."""
    return -(-shared_tokens_per_s * price_list.guarantee_hourly_micros // _PER_TOKENS)
