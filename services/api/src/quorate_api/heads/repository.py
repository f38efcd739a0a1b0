"""Windows of heads, and of replicas that owed reads: the SLA is judged by them."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import (
    CTE,
    BigInteger,
    ColumnElement,
    Integer,
    LargeBinary,
    Uuid,
    and_,
    cast,
    func,
    null,
    or_,
    select,
    union_all,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from quorate_api.database.scope import ROWS, EveryOrganization, Scope, sent
from quorate_api.database.tables import packed_hours, usage_windows
from quorate_api.packed.format import Packed
from quorate_api.telemetry.windows import HEAD_ROLES, HOUR_S, Window
from quorate_api.usage.repository import IN_PARTS, NO_WINDOW, READ_ROWS, window_of

_COLUMNS, _PACKED = usage_windows.c, packed_hours.c


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Hours of a group: [from_s, to_s)."""

    group_id: UUID
    from_s: int
    to_s: int


class HeadRepository:
    def __init__(self, scope: Scope | EveryOrganization) -> None:
        self._scope = scope

    @property
    def _connection(self) -> AsyncConnection:
        return self._scope.connection

    async def around(self, spans: Collection[Span], near_s: int) -> dict[Span, list[Window]]:
        """Heads' windows of each span, those of other replicas that owed reads, and those around it as far as the
        nearest minutes in which a head was active, oldest first.

        `near_s`: no further than this. A former head that only takes itself for the head is active in none, so the head
        that followed it is among them.
        """
        found: dict[Span, list[Window]] = {span: [] for span in spans}
        if not spans:
            return found
        # Bounds of all spans: PostgreSQL plans for the days between them alone.
        from_s = min(span.from_s for span in spans) - near_s
        within = and_(
            _COLUMNS.window_start_s >= from_s, _COLUMNS.window_start_s < max(span.to_s for span in spans) + near_s
        )
        near = self._near(near_s, within)
        in_rows = and_(
            within,
            _COLUMNS.group_id == near.c.group_id,
            or_(_COLUMNS.role.in_(HEAD_ROLES), _COLUMNS.owed_read_entries > 0),
            _COLUMNS.window_start_s >= near.c.first_s,
            _COLUMNS.window_start_s <= near.c.last_s,
        )
        in_hours = and_(
            _PACKED.group_id == near.c.group_id,
            _PACKED.hour_s > near.c.first_s - HOUR_S,
            _PACKED.hour_s <= near.c.last_s,
        )
        key = (near.c.number, near.c.first_s, near.c.last_s)
        nothing = cast(null(), LargeBinary).label("packed")
        rows = self._scope.select(usage_windows, *key, nothing, *_COLUMNS).join(near, in_rows)
        packed = self._scope.select(packed_hours, *key, _PACKED.windows, *NO_WINDOW).join(near, in_hours)
        order = list(found)
        spans_sent = [
            {"number": number, "group_id": str(span.group_id), "from_s": span.from_s, "to_s": span.to_s}
            for number, span in enumerate(order)
        ]
        # One statement, and so one state of both tables: an hour is in one of them.
        async with self._connection.stream(
            union_all(rows, packed), {ROWS: spans_sent}, execution_options=IN_PARTS
        ) as stream:
            async for part in stream.mappings().partitions(READ_ROWS):
                for row in part:
                    span = order[row["number"]]
                    found[span] += _windows(row, str(span.group_id))
        for windows in found.values():
            windows.sort(key=lambda window: window.window_start_s)
        return found

    def _near(self, near_s: int, within: ColumnElement[bool]) -> CTE:
        """Each span that is sent, with the first and the last minute that are about it."""
        due = sent(number=Integer, group_id=Uuid, from_s=BigInteger, to_s=BigInteger)
        times = self._scope.select(usage_windows, _COLUMNS.window_start_s).where(
            within, _COLUMNS.group_id == due.c.group_id, _COLUMNS.role.in_(HEAD_ROLES), _COLUMNS.active_ms > 0
        )
        hours = _PACKED.group_id == due.c.group_id
        before = times.where(_COLUMNS.window_start_s < due.c.from_s, _COLUMNS.window_start_s >= due.c.from_s - near_s)
        before_packed = self._scope.select(packed_hours, _PACKED.last_active_s).where(
            hours,
            _PACKED.hour_s < due.c.from_s,
            _PACKED.hour_s > due.c.from_s - near_s - HOUR_S,
            _PACKED.last_active_s >= due.c.from_s - near_s,
        )
        after = times.where(_COLUMNS.window_start_s >= due.c.to_s, _COLUMNS.window_start_s < due.c.to_s + near_s)
        after_packed = self._scope.select(packed_hours, _PACKED.first_active_s).where(
            hours,
            _PACKED.hour_s >= due.c.to_s,
            _PACKED.hour_s < due.c.to_s + near_s,
            _PACKED.first_active_s < due.c.to_s + near_s,
        )
        last_before = func.greatest(
            before.order_by(_COLUMNS.window_start_s.desc()).limit(1).correlate(due).scalar_subquery(),
            before_packed.order_by(_PACKED.hour_s.desc()).limit(1).correlate(due).scalar_subquery(),
        )
        first_after = func.least(
            after.order_by(_COLUMNS.window_start_s).limit(1).correlate(due).scalar_subquery(),
            after_packed.order_by(_PACKED.hour_s).limit(1).correlate(due).scalar_subquery(),
        )
        return select(
            due.c.number,
            due.c.group_id,
            func.coalesce(last_before, due.c.from_s).label("first_s"),
            func.coalesce(first_after, due.c.to_s - 1).label("last_s"),
        ).cte("near")

    async def of_all(self, from_s: int, to_s: int) -> dict[str, list[Window]]:
        """Heads' windows of all groups that begin in [from_s, to_s), by group. No hour among them is packed yet."""
        assert isinstance(self._scope, EveryOrganization)
        statement = self._scope.select(usage_windows).where(
            _COLUMNS.role.in_(HEAD_ROLES), _COLUMNS.window_start_s >= from_s, _COLUMNS.window_start_s < to_s
        )
        found: dict[str, list[Window]] = defaultdict(list)
        for row in (await self._connection.execute(statement)).all():
            window = window_of(row._mapping)
            found[window.group_id].append(window)
        return found


def _windows(row: Any, group_id: str) -> list[Window]:
    if row["packed"] is None:
        return [window_of(row)]
    judged = Packed.of(row["packed"]).judged(group_id)
    return [window for window in judged if row["first_s"] <= window.window_start_s <= row["last_s"]]
