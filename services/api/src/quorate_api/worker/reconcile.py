"""(c) Groups and guarantees whose intent and observed state differ: ask the coordinator again until they agree."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import structlog
from sqlalchemy import Row
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from quorate_api import limits
from quorate_api.coordinator.client import (
    AnswerOdd,
    Coordinator,
    CoordinatorUnavailable,
    GuaranteeRefused,
    Refused,
    RequestInvalid,
)
from quorate_api.coordinator.schemas import ObservedSla
from quorate_api.database.scope import EveryOrganization
from quorate_api.groups import partition_outcomes
from quorate_api.groups.repository import GroupRepository
from quorate_api.guaranteed.repository import GuaranteeRepository
from quorate_api.partitioned.repository import PartitionedRepository
from quorate_api.worker.repository import WorkerRepository

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Reconciler:
    engine: AsyncEngine
    coordinator: Coordinator
    age_s: float = limits.RECONCILE_AGE_S

    async def run(self) -> None:
        """One pass."""
        now = datetime.now(UTC)
        async with self.engine.begin() as connection:
            repository = WorkerRepository(connection)
            unsettled = await repository.unsettled(now - timedelta(seconds=self.age_s))
            resizing = await repository.resizing()
            partitioned = await self._partitioned(connection).unsettled(
                now - timedelta(seconds=self.age_s), limits.RECONCILE_GROUPS_MAX
            )
            guarantees = await self._guarantees(connection).unsettled(now - timedelta(seconds=self.age_s))
            await repository.sweep(now, now - timedelta(seconds=limits.IDEMPOTENCY_RETENTION_S))
        work = [(self._delete if row.status == "deleting" else self._admit, row) for row in unsettled]
        work += [(self._resize, row) for row in resizing]
        work += [(self._partitions, row) for row in partitioned]
        for settle, row in work + [(self._guarantee, row) for row in guarantees]:
            try:
                await settle(row)
            except AnswerOdd as error:
                log.error("not reconciled", **_named(row), error=str(error))
            except (CoordinatorUnavailable, OperationalError, InterfaceError):
                raise  # the coordinator is away for every row
            except Exception:  # one group's error does not delay the others; it is tried again
                log.exception("not reconciled", **_named(row))

    async def _admit(self, row: Row[Any]) -> None:
        try:
            view = await self.coordinator.put_group(row.id, row.project_id, ObservedSla(**row.sla))
        except (Refused, RequestInvalid) as error:
            log.info("an unfinished intent is refused", group_id=str(row.id), why=str(error))
            async with self.engine.begin() as connection:
                await self._groups(connection).forget_intent(row.id)
            return
        async with self.engine.begin() as connection:
            await self._groups(connection).observe(view, datetime.now(UTC))

    async def _delete(self, row: Row[Any]) -> None:
        await self.coordinator.delete_group(row.id)
        async with self.engine.begin() as connection:
            await self._groups(connection).finish_deletion(row.id, datetime.now(UTC))

    async def _resize(self, row: Row[Any]) -> None:
        revision = int(row.resize["revision"])
        try:
            view = await self.coordinator.resize_group(row.id, ObservedSla(**row.resize["sla"]), revision)
        except (Refused, RequestInvalid) as error:
            log.info("an unfinished resize is refused", group_id=str(row.id), why=str(error))
            view = None
        async with self.engine.begin() as connection:
            if view is None:
                await self._groups(connection).call_off_resize(row.id, revision)
            else:
                now = datetime.now(UTC)
                if not view.awaits(revision):
                    await self._groups(connection).finish_resize(row.id, revision, view.sla_since or now)
                await self._groups(connection).observe(view, now)

    async def _partitions(self, row: Row[Any]) -> None:
        wanted = row.wanted
        ids = [UUID(partition_id) for partition_id in wanted["partitions"]]
        try:
            view = await self.coordinator.set_partitions(
                row.group_id, row.project_id, ObservedSla(**wanted["sla"]), ids, wanted["revision"]
            )
        except (Refused, RequestInvalid) as error:
            log.info("an unfinished change of partitions is refused", group_id=str(row.group_id), why=str(error))
            async with self.engine.begin() as connection:
                await partition_outcomes.call_off(_every(connection), row.group_id)
            return
        async with self.engine.begin() as connection:
            await partition_outcomes.store(_every(connection), view, datetime.now(UTC))

    async def _guarantee(self, row: Row[Any]) -> None:
        try:
            view = await self.coordinator.set_guarantee(row.project_id, row.terms, row.revision)
        except (GuaranteeRefused, RequestInvalid) as error:
            log.info("an unfinished guarantee is refused", **_named(row), why=str(error))
            async with self.engine.begin() as connection:
                await self._guarantees(connection).call_off(row.project_id, row.revision)
            return
        async with self.engine.begin() as connection:
            since = view.since or datetime.now(UTC)
            await self._guarantees(connection).confirm(row.project_id, row.revision, since)

    @staticmethod
    def _guarantees(connection: AsyncConnection) -> GuaranteeRepository:
        return GuaranteeRepository(_every(connection))

    @staticmethod
    def _groups(connection: AsyncConnection) -> GroupRepository:
        return GroupRepository(_every(connection))

    @staticmethod
    def _partitioned(connection: AsyncConnection) -> PartitionedRepository:
        return PartitionedRepository(_every(connection))


def _every(connection: AsyncConnection) -> EveryOrganization:
    return EveryOrganization(connection, "unfinished requests of all organizations")


def _named(row: Row[Any]) -> dict[str, str]:
    """A group's row, one of its partitions, or a guarantee's."""
    for name in ("id", "group_id"):
        if name in row._mapping:
            return {"group_id": str(row._mapping[name])}
    return {"project_id": str(row.project_id)}
