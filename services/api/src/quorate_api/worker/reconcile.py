"""(c) Groups whose intent and observed state differ: ask the coordinator again until they agree."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog
from sqlalchemy import Row
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.coordinator.client import AnswerOdd, Coordinator, CoordinatorUnavailable, Refused, RequestInvalid
from quorate_api.coordinator.schemas import ObservedSla
from quorate_api.database.scope import EveryOrganization
from quorate_api.groups.repository import GroupRepository
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
            await repository.sweep(now, now - timedelta(seconds=limits.IDEMPOTENCY_RETENTION_S))
        work = [(self._delete if row.status == "deleting" else self._admit, row) for row in unsettled]
        for settle, row in work + [(self._resize, row) for row in resizing]:
            try:
                await settle(row)
            except AnswerOdd as error:
                log.error("not reconciled", group_id=str(row.id), error=str(error))
            except (CoordinatorUnavailable, OperationalError, InterfaceError):
                raise  # the coordinator is away for every row
            except Exception:  # one group's error does not delay the others; it is tried again
                log.exception("not reconciled", group_id=str(row.id))

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
                await self._groups(connection).finish_resize(row.id, revision, view.sla_since or now)
                await self._groups(connection).observe(view, now)

    @staticmethod
    def _groups(connection: Any) -> GroupRepository:
        return GroupRepository(EveryOrganization(connection, "unfinished requests of all organizations"))
