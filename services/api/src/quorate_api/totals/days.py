"""Use by day of each group, and its sum before any of the days. Pure."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Self
from uuid import UUID

from quorate_api.telemetry.windows import WINDOW_S

Metered = Mapping[UUID, tuple[int, int, int]]  # entries committed, entries read, megabyte-seconds stored, by group
MEGABYTE_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class DailyUse:
    """`by_group`: the days of each group, and what it had used by the end of each, since it exists."""

    by_group: Mapping[UUID, tuple[list[int], list[tuple[int, int, int]]]]

    @classmethod
    def of(cls, rows: Iterable[tuple[UUID, int, int, int, int]]) -> Self:
        """`rows`: group, day, and its entries, reads and byte-minutes, ordered by day."""
        found: dict[UUID, tuple[list[int], list[tuple[int, int, int]]]] = defaultdict(lambda: ([], []))
        for group_id, day_s, entries, reads, stored in rows:
            days, sums = found[group_id]
            had = sums[-1] if sums else (0, 0, 0)
            days.append(day_s)
            sums.append((had[0] + entries, had[1] + reads, had[2] + stored))
        return cls(dict(found))

    @classmethod
    def of_totals(cls, rows: Iterable[tuple[UUID, int, int, int, int]]) -> Self:
        """`rows`: as for `of`, but each with what the group had used by the end of the day."""
        found: dict[UUID, tuple[list[int], list[tuple[int, int, int]]]] = defaultdict(lambda: ([], []))
        for group_id, day_s, *used in rows:
            days, sums = found[group_id]
            days.append(day_s)
            sums.append((used[0], used[1], used[2]))
        return cls(dict(found))

    def of_groups(self, group_ids: Iterable[UUID]) -> Self:
        """The use of these groups alone."""
        return replace(self, by_group={each: self.by_group[each] for each in group_ids if each in self.by_group})

    def before(self, day_s: int | None) -> Metered:
        """The use before the day that begins at `day_s`; None: at any time."""
        found: dict[UUID, tuple[int, int, int]] = {}
        for group_id, (days, sums) in self.by_group.items():
            number = len(days) if day_s is None else bisect_left(days, day_s)
            if number:
                entries, reads, stored = sums[number - 1]
                found[group_id] = (entries, reads, stored * WINDOW_S // MEGABYTE_BYTES)
        return found
