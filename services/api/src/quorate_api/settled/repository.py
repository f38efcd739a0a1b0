"""Totals of usage until the begin of a day before which all is final, so that no sum reads a group's whole life.

The worker adds one for each day that it settles. It keeps those at the ends of months, and the last one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import BigInteger, Table, cast, delete, func, literal, select, union_all
from sqlalchemy.dialects.postgresql import Insert as Upsert
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from quorate_api.database.scope import EveryOrganization
from quorate_api.database.tables import settled_logs, settled_times, settled_totals, usage_days, usage_log_days
from quorate_api.months.calendar import month_begin, month_end

_UNTIL = settled_times.c.until_s
NEVER_S = -1


async def settled_before(connection: AsyncConnection, day_s: int | None) -> int:
    """The last time until which there are totals, not after `day_s`; None: at any time. `NEVER_S`: there is none."""
    statement = select(func.coalesce(func.max(_UNTIL), NEVER_S))
    if day_s is not None:
        statement = statement.where(day_s >= _UNTIL)
    return int((await connection.execute(statement)).scalar_one())


class SettledRepository:
    def __init__(self, scope: EveryOrganization) -> None:
        self._scope = scope

    async def settle(self, until_s: int) -> None:
        """Make the totals until `until_s`, the begin of a day. No window of a day before it may come any more."""
        reached_s = await settled_before(self._scope.connection, None)
        if reached_s == NEVER_S:
            await self._add(NEVER_S, until_s)
            return
        while reached_s < until_s:
            to_s = min(until_s, _month_end_s(reached_s))
            await self._add(reached_s, to_s)
            reached_s = to_s

    async def forget(self) -> None:
        """Remove totals within months, but for the last ones.

        Long after their successors were made: a query that has chosen them reads them.
        """
        last_s = await settled_before(self._scope.connection, None)
        found = (await self._scope.connection.execute(select(_UNTIL).where(last_s > _UNTIL))).all()
        within = [int(row[0]) for row in found if _month_begin_s(int(row[0])) != int(row[0])]
        await self._scope.connection.execute(delete(settled_times).where(_UNTIL.in_(within)))

    async def _add(self, from_s: int, to_s: int) -> None:
        """Make totals until `to_s` from those until `from_s`, and the days between."""
        await self._scope.connection.execute(insert(settled_times).values(until_s=to_s))
        for kind in _KINDS:
            await self._scope.connection.execute(self._added(kind, from_s, to_s))

    def _added(self, kind: "_Kind", from_s: int, to_s: int) -> Upsert:
        days, totals = kind.days, kind.totals
        columns = (*kind.key, *kind.sums)
        between = self._scope.select(days, *(days.c[name] for name in columns)).where(
            days.c.day_s >= from_s, days.c.day_s < to_s
        )
        before = self._scope.select(totals, *(totals.c[name] for name in columns)).where(totals.c.until_s == from_s)
        found = union_all(before, between).subquery()
        key = [found.c[name] for name in kind.key]
        sums = select(*key, literal(to_s, BigInteger), *(kind.of(found.c[name]) for name in kind.sums)).group_by(*key)
        return self._scope.upsert(totals).from_select([*kind.key, "until_s", *kind.sums], sums)


@dataclass(frozen=True, slots=True)
class _Kind:
    """Days, and totals of them. `of`: several together."""

    days: Table
    totals: Table
    key: tuple[str, ...]
    sums: tuple[str, ...]
    of: Callable[[Any], Any]


def _sum(column: Any) -> Any:
    return cast(func.sum(column), BigInteger)


_KINDS = (
    _Kind(
        usage_days, settled_totals, ("organization_id", "group_id"),
        ("read_entries", "stored_byte_minutes", "read_bytes"), _sum,
    ),
    _Kind(
        usage_log_days, settled_logs, ("organization_id", "group_id", "log_epoch"),
        ("committed_entries", "committed_bytes"), func.max,
    ),
)  # fmt: skip


def _month_begin_s(at_s: int) -> int:
    return int(month_begin(datetime.fromtimestamp(at_s, UTC)).timestamp())


def _month_end_s(at_s: int) -> int:
    """The end of the month that has `at_s`."""
    return int(month_end(datetime.fromtimestamp(_month_begin_s(at_s), UTC)).timestamp())
