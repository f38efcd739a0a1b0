"""Groups with partitions: one SLA over several groups, each with a chain of its own.

The first partition is the group itself, and the others name it in `partition_of`. Each row has its part of the SLA and
of the price, so that usage, credits and invoices count every partition once.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, func, or_

from quorate_api.coordinator.schemas import PartitionsView
from quorate_api.database.scope import EveryOrganization, Scope
from quorate_api.database.tables import groups, partitioned_groups


@dataclass(frozen=True, slots=True)
class Whole:
    """A group with partitions, as its owner sees it."""

    sla: dict[str, Any]
    price: dict[str, Any]
    partitions: int
    """With those that are being added."""
    statuses: list[str]
    availability_ppm: int
    """The least of any partition."""


class PartitionedRepository:
    """The worker uses it too, with the view of every organization."""

    def __init__(self, scope: Scope | EveryOrganization) -> None:
        self._scope = scope

    async def get(self, group_id: UUID) -> Row[Any] | None:
        statement = self._scope.select(partitioned_groups).where(partitioned_groups.c.group_id == group_id)
        return (await self._scope.connection.execute(statement)).one_or_none()

    async def wholes(self, group_ids: Iterable[UUID]) -> dict[UUID, Whole]:
        """The groups that have partitions, by id; others are left out."""
        ids = list(group_ids)
        rows = partitioned_groups.c
        statement = self._scope.select(partitioned_groups).where(rows.group_id.in_(ids), rows.sla.is_not(None))
        found = (await self._scope.connection.execute(statement)).all()
        if not found:
            return {}
        of = func.coalesce(groups.c.partition_of, groups.c.id)
        wanted = [row.group_id for row in found]
        parts = self._scope.select(
            groups,
            of.label("of"),
            func.count().label("partitions"),
            func.array_agg(groups.c.status.distinct()).label("statuses"),
            func.min(groups.c.availability_ppm).label("availability_ppm"),
        ).where(or_(groups.c.id.in_(wanted), groups.c.partition_of.in_(wanted)))
        by_group = {part.of: part for part in (await self._scope.connection.execute(parts.group_by(of))).all()}
        return {
            row.group_id: Whole(
                row.sla,
                row.price,
                by_group[row.group_id].partitions,
                by_group[row.group_id].statuses,
                by_group[row.group_id].availability_ppm,
            )
            for row in found
        }

    async def members(self, group_id: UUID) -> list[Row[Any]]:
        """The group's partitions in order; the group alone where it has none."""
        statement = self._scope.select(groups).where(or_(groups.c.id == group_id, groups.c.partition_of == group_id))
        statement = statement.order_by(func.coalesce(groups.c.partition, 0))
        return list((await self._scope.connection.execute(statement)).all())

    async def begin(self, group_id: UUID, wanted: dict[str, Any], now: datetime) -> None:
        """Store the request of a change. `wanted`: revision, sla, price and partitions."""
        assert isinstance(self._scope, Scope)
        values = {"wanted": wanted, "requested_at": now}
        first = {"revision": 0, "layout": 0, "in_use": 1, "changes": []}
        statement = self._scope.upsert(partitioned_groups, group_id=group_id, **first, **values)
        statement = statement.on_conflict_do_update(index_elements=[partitioned_groups.c.group_id], set_=values)
        await self._scope.connection.execute(statement)

    async def finish(self, view: PartitionsView) -> None:
        """The request of this revision was carried out."""
        row = await self.get(view.group_id)
        if row is not None and row.wanted is not None and row.wanted["revision"] == view.revision:
            values = {"revision": view.revision, "sla": row.wanted["sla"], "price": row.wanted["price"], "wanted": None}
            statement = self._scope.update(partitioned_groups).where(partitioned_groups.c.group_id == view.group_id)
            await self._scope.connection.execute(statement.values(**values))
        await self.observe(view)

    async def observe(self, view: PartitionsView) -> None:
        """Store which partitions clients use. An older layout changes nothing."""
        rows = partitioned_groups.c
        statement = self._scope.update(partitioned_groups).where(
            rows.group_id == view.group_id, rows.layout <= view.layout
        )
        changes = [change.model_dump() for change in view.changes]
        values = {"layout": view.layout, "in_use": view.in_use, "changes": changes}
        await self._scope.connection.execute(statement.values(**values))

    async def call_off(self, group_id: UUID) -> None:
        """Remove the request of a change that did not happen."""
        rows = partitioned_groups.c
        first = self._scope.delete(partitioned_groups).where(rows.group_id == group_id, rows.revision == 0)
        await self._scope.connection.execute(first)
        statement = self._scope.update(partitioned_groups).where(rows.group_id == group_id)
        await self._scope.connection.execute(statement.values(wanted=None))

    async def unsettled(self, requested_before: datetime, limit: int) -> list[Row[Any]]:
        """Groups with a change of unknown outcome, that no running request works on."""
        rows = partitioned_groups.c
        statement = (
            self._scope.select(partitioned_groups, partitioned_groups, groups.c.project_id)
            .join(groups, groups.c.id == rows.group_id)
            .where(rows.wanted.is_not(None), rows.requested_at < requested_before, groups.c.status != "deleted")
            .order_by(rows.requested_at)
            .limit(limit)
        )
        return list((await self._scope.connection.execute(statement)).all())
