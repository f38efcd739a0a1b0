"""Months of organizations: until when they are closed, and which closed ones have changed since.

A close, a correction and an adjustment hold the lock of their organization. A note of judged hours shares it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, Uuid, any_, func, literal, select
from sqlalchemy.ext.asyncio import AsyncConnection

from quorate_api.database.scope import ROWS, EveryOrganization, Scope, SomeOrganizations, rows_sent
from quorate_api.database.tables import changed_months, organizations
from quorate_api.months.calendar import month_begin

JudgedHour = tuple[UUID, UUID, int]  # the organization, the group, the begin

_ORGANIZATIONS, _CHANGED = organizations.c, changed_months.c


class MonthRepository:
    def __init__(self, scope: Scope | SomeOrganizations | EveryOrganization) -> None:
        self._scope = scope

    @property
    def _connection(self) -> AsyncConnection:
        return self._scope.connection

    @property
    def _one(self) -> Scope:
        assert isinstance(self._scope, Scope), "one organization"
        return self._scope

    async def lock(self) -> None:
        """Until the end of the transaction, nobody else closes, corrects or adjusts months of the organization."""
        await self._connection.execute(select(func.pg_advisory_xact_lock(_key(self._one.organization_id))))

    async def closed_until(self, owners: Collection[UUID] | None = None) -> dict[UUID, datetime]:
        """The end of the last month that was closed, by organization; none for those without one.

        `owners`: these organizations alone.
        """
        columns = _ORGANIZATIONS.organization_id, _ORGANIZATIONS.closed_until
        statement = self._scope.select(organizations, *columns).where(_ORGANIZATIONS.closed_until.is_not(None))
        if owners is not None:
            statement = statement.where(_ORGANIZATIONS.organization_id == any_(literal(list(owners), ARRAY(Uuid))))
        return {row[0]: row[1] for row in (await self._connection.execute(statement)).all()}

    async def set_closed_until(self, at: datetime) -> None:
        await self._connection.execute(self._one.update(organizations).values(closed_until=at))

    async def note_corrected(self, group_id: UUID, months: Iterable[datetime]) -> None:
        """Note closed months of the group. The caller holds the organization's lock."""
        for month in months:
            noted = self._one.upsert(changed_months, group_id=group_id, month_start=month)
            await self._connection.execute(noted.on_conflict_do_nothing())

    async def note_judged(self, hours: Collection[JudgedHour]) -> None:
        """Note the closed months of these hours, in the transaction that judged them.

        It waits for a close that runs: the close may have read the windows before they were complete.
        """
        assert isinstance(self._scope, EveryOrganization)
        if not hours:
            return
        over = month_begin(datetime.now(UTC))
        closed = await self.closed_until({owner for owner, _, _ in hours})
        late = [each for each in hours if _at(each) < over or _is_closed(each, closed)]
        if not late:
            return
        owners = {owner for owner, _, _ in late}
        # In one order, so that concurrent transactions wait alike.
        for owner in sorted(owners):
            await self._connection.execute(select(func.pg_advisory_xact_lock_shared(_key(owner))))
        closed = await self.closed_until(owners)
        months = {(each[0], each[1], month_begin(_at(each))) for each in late if _is_closed(each, closed)}
        rows = [
            {"organization_id": str(owner), "group_id": str(group_id), "month_start": month.isoformat()}
            for owner, group_id, month in sorted(months)
        ]
        if rows:
            noted = self._scope.upsert(changed_months).from_select(list(_CHANGED.keys()), rows_sent(changed_months))
            await self._connection.execute(noted.on_conflict_do_nothing(), {ROWS: rows})

    async def organizations_changed(self) -> list[UUID]:
        """Organizations with closed months that have changed."""
        assert isinstance(self._scope, EveryOrganization)
        statement = self._scope.select(changed_months, _CHANGED.organization_id).distinct()
        rows = (await self._connection.execute(statement.order_by(_CHANGED.organization_id))).all()
        return [row[0] for row in rows]

    async def take_changed(self) -> dict[datetime, list[UUID]]:
        """Closed months that have changed, oldest first, with their groups. The notes end with the transaction.

        The caller holds the organization's lock.
        """
        taken = self._one.delete(changed_months).returning(_CHANGED.month_start, _CHANGED.group_id)
        found: dict[datetime, list[UUID]] = defaultdict(list)
        for month, group_id in sorted(tuple(row) for row in (await self._connection.execute(taken)).all()):
            found[month.astimezone(UTC)].append(group_id)
        return dict(found)


def _key(organization_id: UUID) -> Any:
    return func.hashtextextended(f"close {organization_id}", 0)


def _at(hour: JudgedHour) -> datetime:
    return datetime.fromtimestamp(hour[2], UTC)


def _is_closed(hour: JudgedHour, closed: dict[UUID, datetime]) -> bool:
    return hour[0] in closed and _at(hour) < closed[hour[0]]
