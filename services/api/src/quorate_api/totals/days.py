"""Use by day of each group, and its sum before any of the days. Pure."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, Self
from uuid import UUID

from quorate_api.telemetry.windows import WINDOW_S

MEGABYTE_BYTES = 1_000_000


class Sums(NamedTuple):
    """Use in sum: entries committed, entries read, bytes read, and what was stored, in byte-minutes or in
    megabyte-seconds. In the order of `pricing.prices.KINDS`."""

    entries: int
    reads: int
    read_bytes: int
    stored: int

    def plus(self, other: "Sums") -> "Sums":
        return Sums(*(one + more for one, more in zip(self, other, strict=True)))


NOTHING = Sums(0, 0, 0, 0)
Metered = Mapping[UUID, Sums]  # by group; stored in megabyte-seconds


@dataclass(frozen=True, slots=True)
class DailyUse:
    """`by_group`: the days of each group, and what it had used by the end of each, since it exists. Stored in
    byte-minutes."""

    by_group: Mapping[UUID, tuple[list[int], list[Sums]]]

    @classmethod
    def of(cls, rows: Iterable[tuple[UUID, int, Sums]]) -> Self:
        """`rows`: group, day, and its use in the day, ordered by day."""
        found: dict[UUID, tuple[list[int], list[Sums]]] = defaultdict(lambda: ([], []))
        for group_id, day_s, used in rows:
            days, sums = found[group_id]
            days.append(day_s)
            sums.append(sums[-1].plus(used) if sums else used)
        return cls(dict(found))

    @classmethod
    def of_totals(cls, rows: Iterable[tuple[UUID, int, Sums]]) -> Self:
        """`rows`: as for `of`, but each with what the group had used by the end of the day."""
        found: dict[UUID, tuple[list[int], list[Sums]]] = defaultdict(lambda: ([], []))
        for group_id, day_s, used in rows:
            days, sums = found[group_id]
            days.append(day_s)
            sums.append(used)
        return cls(dict(found))

    def of_groups(self, group_ids: Iterable[UUID]) -> Self:
        """The use of these groups alone."""
        return replace(self, by_group={each: self.by_group[each] for each in group_ids if each in self.by_group})

    def before(self, day_s: int | None) -> Metered:
        """The use before the day that begins at `day_s`; None: at any time."""
        found: dict[UUID, Sums] = {}
        for group_id, (days, sums) in self.by_group.items():
            number = len(days) if day_s is None else bisect_left(days, day_s)
            if number:
                used = sums[number - 1]
                found[group_id] = used._replace(stored=used.stored * WINDOW_S // MEGABYTE_BYTES)
        return found
