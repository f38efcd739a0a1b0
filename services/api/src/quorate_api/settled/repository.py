"""Running totals by month of days that are final, so that a sum over a group's life reads a few weeks of days.

`usage_settled` tells until when a month's totals reach: the last settled day, in the end that of the month.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import BigInteger, Select, Table, cast, func, literal, select, union_all
from sqlalchemy.dialects.postgresql import Insert as Upsert
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.sql.selectable import ScalarSelect

from quorate_api.database.scope import EveryOrganization
from quorate_api.database.tables import usage_days, usage_log_days, usage_log_months, usage_months, usage_settled
from quorate_api.months.calendar import month_begin, month_end

_SETTLED = usage_settled.c
NEVER_S = -1


def month_before(day_s: int | None) -> ScalarSelect[Any]:
    """The month whose totals reach furthest, of those that end by `day_s`; None: of all. NULL if there is none."""
    return _latest(_SETTLED.month_s, day_s).scalar_subquery()


def until_before(day_s: int | None) -> Any:
    """The time until which the totals of that month reach."""
    return func.coalesce(_latest(_SETTLED.until_s, day_s).scalar_subquery(), cast(NEVER_S, BigInteger))


def _latest(column: Any, day_s: int | None) -> Select[Any]:
    found = select(column).order_by(_SETTLED.until_s.desc()).limit(1)
    return found if day_s is None else found.where(_SETTLED.until_s <= day_s)


class SettledRepository:
    def __init__(self, scope: EveryOrganization) -> None:
        self._scope = scope

    async def settle(self, until_s: int) -> None:
        """Add the days before `until_s`, the begin of a day, to the totals. No window of them may come any more."""
        latest = select(_SETTLED.month_s, _SETTLED.until_s).order_by(_SETTLED.until_s.desc()).limit(1)
        row = (await self._scope.connection.execute(latest)).first()
        if row is None:
            await self._add(None, NEVER_S, until_s)
            return
        month_s, reached_s = int(row.month_s), int(row.until_s)
        while reached_s < until_s:
            end_s = min(until_s, _month_end_s(reached_s))
            month_s, reached_s = await self._add(month_s, reached_s, end_s), end_s

    async def _add(self, before: int | None, from_s: int, to_s: int) -> int:
        """Add the days in [from_s, to_s) to the totals of their month, which begin as those of the month `before`.

        Returns the month.
        """
        month_s = _month_s(to_s - 1)
        for kind in _KINDS:
            await self._scope.connection.execute(self._added(kind, before, from_s, to_s, month_s))
        settled = insert(usage_settled).values(month_s=month_s, until_s=to_s)
        settled = settled.on_conflict_do_update(index_elements=["month_s"], set_={"until_s": settled.excluded.until_s})
        await self._scope.connection.execute(settled)
        return month_s

    def _added(self, kind: "_Kind", before: int | None, from_s: int, to_s: int, month_s: int) -> Upsert:
        month = literal(month_s, BigInteger).label("month_s")
        days, months = kind.days, kind.months
        parts = self._scope.select(
            days, *(days.c[name] for name in kind.key), month, *(days.c[name] for name in kind.sums)
        )
        parts = parts.where(days.c.day_s >= from_s, days.c.day_s < to_s)
        if before != month_s:
            earlier = (*(months.c[name] for name in kind.key), month, *(months.c[name] for name in kind.sums))
            carried = self._scope.select(months, *earlier).where(months.c.month_s == before)
            found = union_all(parts, carried).subquery()
        else:
            found = parts.subquery()
        key = [found.c[name] for name in (*kind.key, "month_s")]
        # In the order of keys, so that concurrent transactions lock rows in the same order.
        totals = select(*key, *(kind.of(found.c[name]) for name in kind.sums)).group_by(*key).order_by(*key)
        added = self._scope.upsert(months).from_select([*kind.key, "month_s", *kind.sums], totals)
        further = {name: kind.with_(months.c[name], added.excluded[name]) for name in kind.sums}
        return added.on_conflict_do_update(index_elements=[*kind.key[1:], "month_s"], set_=further)


@dataclass(frozen=True, slots=True)
class _Kind:
    """Days and months of one kind of total. `of`: several days together. `with_`: a month and more days."""

    days: Table
    months: Table
    key: tuple[str, ...]
    sums: tuple[str, ...]
    of: Callable[[Any], Any]
    with_: Callable[[Any, Any], Any]


_KINDS = (
    _Kind(
        usage_days, usage_months, ("organization_id", "group_id"), ("read_entries", "stored_byte_minutes"),
        lambda each: cast(func.sum(each), BigInteger), operator.add,
    ),
    _Kind(
        usage_log_days, usage_log_months, ("organization_id", "group_id", "log_epoch"),
        ("committed_entries", "committed_bytes"), func.max, func.greatest,
    ),
)  # fmt: skip


def _month_s(at_s: int) -> int:
    return int(month_begin(datetime.fromtimestamp(at_s, UTC)).timestamp())


def _month_end_s(at_s: int) -> int:
    """The end of the month that has `at_s`."""
    return int(month_end(month_begin(datetime.fromtimestamp(at_s, UTC))).timestamp())
