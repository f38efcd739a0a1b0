"""(b) The coordinator's events: applied in order, each once.

The number of the last applied event is stored in the transaction that applies it. An event says *that* a group
changed. The worker then asks for the group's current state, so that it never stores an older one.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.coordinator.client import AnswerOdd, Coordinator
from quorate_api.coordinator.schemas import Event, Events, GroupView
from quorate_api.database.scope import EveryOrganization
from quorate_api.groups.repository import GroupRepository
from quorate_api.worker.repository import WorkerRepository

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Follower:
    engine: AsyncEngine
    coordinator: Coordinator
    _unseen: set[UUID] = field(default_factory=set)  # groups that changed, and for which the answer was odd

    async def run(self) -> None:
        while True:
            await self.step(limits.EVENTS_WAIT_MS)

    async def step(self, wait_ms: int) -> int:
        """Ask for events once and apply them. Returns their number."""
        async with self.engine.connect() as connection:
            after = await WorkerRepository(connection).applied_seq(lock=False)
        answer = await self.coordinator.events(after, wait_ms)
        if (answer.last is not None and answer.last < after) or (answer.first or 0) > after + 1:
            await self.resynchronise(after, answer)
            return 0
        if not answer.events and not self._unseen:
            return 0
        changed = {event.group_id for event in answer.events if event.group_id is not None} | self._unseen
        async with self.engine.connect() as connection:
            known = await WorkerRepository(connection).owners(changed)
        await self.apply(answer.events, await self._views(known))
        return len(answer.events)

    async def _views(self, group_ids: Iterable[UUID]) -> list[GroupView]:
        """The present state of the groups that the coordinator has. An odd answer delays its group alone."""
        slots = asyncio.Semaphore(limits.EVENTS_VIEWS_AT_ONCE)
        unseen: set[UUID] = set()

        async def view(group_id: UUID) -> GroupView | None:
            async with slots:
                try:
                    return await self.coordinator.group(group_id)
                except AnswerOdd as error:
                    log.error("a changed group is not seen", group_id=str(group_id), error=str(error))
                    unseen.add(group_id)
                    return None

        async with asyncio.TaskGroup() as asking:
            answers = [asking.create_task(view(group_id)) for group_id in sorted(group_ids)]
        self._unseen = set(sorted(unseen)[: limits.EVENTS_UNSEEN_MAX])
        return [found for answer in answers if (found := answer.result()) is not None]

    async def resynchronise(self, after: int, answer: Events) -> None:
        """Recover from missing events: trimmed during our absence, or lost with the coordinator's data.

        Asks for the state of every group, then follows events from the oldest one on record.
        """
        resume = (answer.first or 1) - 1
        log.error("the coordinator's events have a gap", applied=after, first=answer.first, last=answer.last)
        views = await self.coordinator.groups()
        async with self.engine.begin() as connection:
            repository = WorkerRepository(connection)
            if await repository.applied_seq(lock=True) != after:
                return  # another worker has applied it
            groups = GroupRepository(EveryOrganization(connection, "events are the whole fleet's"))
            for view in views:
                await groups.observe(view, datetime.now(UTC))
            await repository.set_applied_seq(resume)

    async def apply(self, events: list[Event], views: list[GroupView]) -> None:
        """Idempotent: events up to the stored number are skipped."""
        async with self.engine.begin() as connection:
            repository = WorkerRepository(connection)
            applied = await repository.applied_seq(lock=True)
            news = sorted((event for event in events if event.seq > applied), key=lambda event: event.seq)
            if not news and not views:
                return
            group_ids: set[UUID] = {event.group_id for event in news if event.group_id is not None}
            await repository.add_events(news, await repository.owners(group_ids))
            groups = GroupRepository(EveryOrganization(connection, "events are the whole fleet's"))
            now = datetime.now(UTC)
            for view in views:
                await groups.observe(view, now)
            if news:
                await repository.set_applied_seq(news[-1].seq)
