"""The worker's reads and writes for every organization."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, Row, all_, any_, delete, func, literal, or_, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.elements import ColumnElement

from quorate_api import limits
from quorate_api.coordinator.schemas import Event
from quorate_api.database.scope import ROWS, EveryOrganization, rows_sent
from quorate_api.database.tables import (
    commitments,
    coordinator_cursor,
    group_events,
    groups,
    guarantees,
    idempotency_keys,
    invoices,
    organizations,
    partitioned_groups,
    rejected_usage,
    sessions,
)
from quorate_api.telemetry.records import Rejected


class WorkerRepository:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection
        self._scope = EveryOrganization(connection, "the worker follows the fleet, which serves all organizations")

    async def applied_seq(self, *, lock: bool) -> int:
        statement = select(coordinator_cursor.c.applied_seq)
        if lock:
            statement = statement.with_for_update()
        return int((await self._connection.execute(statement)).scalar_one())

    async def set_applied_seq(self, seq: int) -> None:
        await self._connection.execute(update(coordinator_cursor).values(applied_seq=seq))

    async def owners(self, group_ids: Iterable[UUID]) -> dict[UUID, UUID]:
        """The organization of each known group."""
        wanted = list(group_ids)
        if not wanted:
            return {}
        statement = self._scope.select(groups, groups.c.id, groups.c.organization_id).where(groups.c.id.in_(wanted))
        return {row.id: row.organization_id for row in (await self._connection.execute(statement)).all()}

    async def unseen(self) -> set[UUID]:
        """Groups that changed, and whose state is to be asked for again."""
        statement = self._scope.select(groups, groups.c.id).where(groups.c.unseen).limit(limits.EVENTS_UNSEEN_MAX)
        return {row.id for row in (await self._connection.execute(statement)).all()}

    async def note_unseen(self, group_ids: set[UUID]) -> None:
        if group_ids:
            statement = self._scope.update(groups).where(groups.c.id.in_(group_ids))
            await self._connection.execute(statement.values(unseen=True))

    async def note_seen(self, group_ids: set[UUID]) -> None:
        ids = literal(list(group_ids), ARRAY(groups.c.id.type))
        statement = self._scope.update(groups).where(groups.c.unseen, groups.c.id == any_(ids))
        await self._connection.execute(statement.values(unseen=False))

    async def note_others_unseen(self, group_ids: set[UUID]) -> None:
        ids = literal(list(group_ids), ARRAY(groups.c.id.type))
        statement = self._scope.update(groups).where(groups.c.deleted_at.is_(None), groups.c.id != all_(ids))
        await self._connection.execute(statement.values(unseen=True))

    async def add_events(self, events: list[Event], owners: dict[UUID, UUID]) -> None:
        values = [
            {
                "seq": event.seq,
                "organization_id": owners[event.group_id],
                "group_id": event.group_id,
                "at": event.at,
                "kind": event.kind,
                "epoch": event.epoch,
                "status": event.status,
                "server_id": event.server_id,
                "message": event.message,
            }
            for event in events
            if event.group_id in owners
        ]
        if values:
            statement = self._scope.upsert(group_events).values(values).on_conflict_do_nothing()
            await self._connection.execute(statement)

    async def unsettled(self, created_before: datetime) -> list[Row[Any]]:
        """Groups whose intent and observed state differ, and that no running request works on. Partitions are settled
        with their group."""
        statement = (
            self._scope.select(groups)
            .where(
                or_(groups.c.status == "deleting", (groups.c.status == "provisioning") & ~self._is_partitioned()),
                groups.c.partition_of.is_(None),
                func.coalesce(groups.c.delete_requested_at, groups.c.created_at) < created_before,
            )
            .order_by(groups.c.created_at)
            .limit(limits.RECONCILE_GROUPS_MAX)
        )
        return list((await self._connection.execute(statement)).all())

    async def resizing(self) -> list[Row[Any]]:
        """Groups with a resize of unknown outcome, or whose replicas move for it; any of them, if many. A request
        may still be working on it; asking again is harmless."""
        statement = self._scope.select(groups).where(
            groups.c.resize.is_not(None),
            groups.c.deleted_at.is_(None),
            groups.c.partition_of.is_(None),
            ~self._is_partitioned(),
        )
        statement = statement.order_by(func.random()).limit(limits.RECONCILE_GROUPS_MAX)
        return list((await self._connection.execute(statement)).all())

    def _is_partitioned(self) -> ColumnElement[bool]:
        statement = self._scope.select(partitioned_groups, partitioned_groups.c.group_id)
        return groups.c.id.in_(statement)

    async def groups_by_status(self) -> dict[str, int]:
        """The number of groups of each status, without deleted ones."""
        statement = (
            self._scope.select(groups, groups.c.status, func.count())
            .where(groups.c.deleted_at.is_(None))
            .group_by(groups.c.status)
        )
        return {str(row[0]): int(row[1]) for row in (await self._connection.execute(statement)).all()}

    async def groups_by_region(self) -> dict[str, tuple[int, int]]:
        """Groups whose SLA is in force in each region, and those of them that accept appends."""
        region = groups.c.sla["region"].astext
        accepting = func.count().filter(groups.c.status.in_(("active", "degraded")))
        statement = self._scope.select(groups, region, func.count(), accepting).where(
            groups.c.active_at.is_not(None), groups.c.delete_requested_at.is_(None), groups.c.deleted_at.is_(None)
        )
        rows = (await self._connection.execute(statement.group_by(region))).all()
        return {str(row[0]): (int(row[1]), int(row[2])) for row in rows}

    async def running_groups(self) -> list[Row[Any]]:
        """Groups whose SLA is in force now."""
        statement = self._scope.select(
            groups,
            groups.c.id,
            groups.c.sla,
            groups.c.availability_ppm,
            groups.c.active_at,
            groups.c.delete_requested_at,
        ).where(groups.c.active_at.is_not(None), groups.c.delete_requested_at.is_(None))
        return list((await self._connection.execute(statement)).all())

    async def keep_rejected(self, rejected: list[Rejected], now: datetime) -> int:
        """Returns the number of those that are new."""
        rows = [
            {
                "entry_id": one.entry_id,
                "position": one.position,
                "rejected_at": now.isoformat(),
                "reason": _storable(one.reason)[: limits.INGEST_REASON_CHARS_MAX],
                "data": _storable(one.data)[: limits.INGEST_REJECTED_CHARS_MAX],
            }
            for one in rejected
        ]
        statement = insert(rejected_usage).from_select(list(rejected_usage.c.keys()), rows_sent(rejected_usage))
        statement = statement.on_conflict_do_nothing()
        return int((await self._connection.execute(statement, {ROWS: rows})).rowcount)

    async def billed_micros(self) -> dict[str, int]:
        """The sum of all documents of each kind. Credits are negative."""
        statement = self._scope.select(invoices, invoices.c.kind, func.sum(invoices.c.total_micros)).group_by(
            invoices.c.kind
        )
        return {str(row[0]): int(row[1]) for row in (await self._connection.execute(statement)).all()}

    async def to_close(self, until: datetime) -> list[UUID]:
        """Organizations that had a group, a guarantee or a commitment before `until`, the begin of a month, and are
        not closed so far."""
        columns = organizations.c
        had_groups = self._scope.select(groups, groups.c.id).where(
            groups.c.organization_id == columns.organization_id, groups.c.active_at < until
        )
        had_committed = self._scope.select(commitments, commitments.c.id).where(
            commitments.c.organization_id == columns.organization_id, commitments.c.starts_at < until
        )
        had_guarantee = self._scope.select(guarantees, guarantees.c.revision).where(
            guarantees.c.organization_id == columns.organization_id, guarantees.c.since < until
        )
        owes = or_(had_groups.exists(), had_committed.exists(), had_guarantee.exists())
        statement = (
            self._scope.select(organizations, columns.organization_id)
            .where(or_(columns.closed_until.is_(None), columns.closed_until < until), owes)
            .order_by(columns.organization_id)
        )
        return [row.organization_id for row in (await self._connection.execute(statement)).all()]

    async def sweep(self, now: datetime, keys_before: datetime) -> None:
        """Delete expired sessions, expired answers, and rejected usage beyond the newest."""
        order = (rejected_usage.c.rejected_at, rejected_usage.c.entry_id, rejected_usage.c.position)
        surplus = select(*order).order_by(*(column.desc() for column in order)).offset(limits.INGEST_REJECTED_ROWS_MAX)
        newest = (await self._connection.execute(surplus.limit(1))).first()
        if newest is not None:
            await self._connection.execute(delete(rejected_usage).where(tuple_(*order) <= tuple_(*newest)))
        await self._connection.execute(self._scope.delete(sessions).where(sessions.c.expires_at < now))
        await self._connection.execute(delete(idempotency_keys).where(idempotency_keys.c.created_at < keys_before))


def _storable(text: str) -> str:
    """PostgreSQL's text holds no zero, and no half of a surrogate pair."""
    return text.replace("\x00", "\ufffd").encode(errors="replace").decode()
