"""(b) The coordinator's events: applied in order, each once.

The number of the last applied event is stored in the transaction that applies it. An event says *that* a group
changed. The worker then asks for the group's current state, so that it never stores an older one.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from quorate_api import limits
from quorate_api.coordinator.client import AnswerOdd, Coordinator, RequestInvalid
from quorate_api.coordinator.schemas import Event, Events, GroupView
from quorate_api.database.scope import EveryOrganization
from quorate_api.events.catalogue import EventType, GroupStatusChanged
from quorate_api.events.repository import EventRepository
from quorate_api.groups.repository import GroupRepository
from quorate_api.months.repository import MonthRepository
from quorate_api.sla.losses import LOST
from quorate_api.telemetry.windows import HOUR_S
from quorate_api.worker.repository import WorkerRepository

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Asked:
    """The coordinator's answers about groups. `seen`: those with a usable one, also that it has no such group."""

    views: list[GroupView] = field(default_factory=list)
    seen: set[UUID] = field(default_factory=set)
    unseen: set[UUID] = field(default_factory=set)


@dataclass(slots=True)
class Follower:
    engine: AsyncEngine
    coordinator: Coordinator

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
        async with self.engine.connect() as connection:
            repository = WorkerRepository(connection)
            unseen = await repository.unseen()
            changed = {event.group_id for event in answer.events if event.group_id is not None}
            known = set(await repository.owners(changed)) | unseen
        if not answer.events and not known:
            return 0
        await self.apply(after, answer.events, await self._ask(known))
        return len(answer.events)

    async def _ask(self, group_ids: Iterable[UUID]) -> Asked:
        """The present state of the groups that the coordinator has. An odd answer delays its group alone."""
        slots = asyncio.Semaphore(limits.EVENTS_VIEWS_AT_ONCE)
        asked = Asked()

        async def ask(group_id: UUID) -> None:
            async with slots:
                try:
                    view = await self.coordinator.group(group_id)
                except (AnswerOdd, RequestInvalid) as error:
                    log.error("a changed group is not seen", group_id=str(group_id), error=str(error))
                    asked.unseen.add(group_id)
                    return
            asked.seen.add(group_id)
            if view is not None:
                asked.views.append(view)

        failures = await asyncio.gather(*(ask(group_id) for group_id in group_ids), return_exceptions=True)
        for failure in failures:
            if failure is not None:
                raise failure  # the coordinator is away for every group
        return asked

    async def _note_losses(self, connection: AsyncConnection, news: list[Event], owners: Mapping[UUID, UUID]) -> None:
        """A log that was lost in a month that is closed by now is credited all the same."""
        hours = [
            (owners[event.group_id], event.group_id, int(event.at.timestamp()) // HOUR_S * HOUR_S)
            for event in news
            if event.status == LOST and event.group_id is not None and event.group_id in owners
        ]
        await MonthRepository(EveryOrganization(connection, "events are the whole fleet's")).note_judged(hours)

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
            await repository.note_seen({view.group_id for view in views})
            await repository.note_others_unseen({view.group_id for view in views})
            await repository.set_applied_seq(resume)

    async def apply(self, after: int, events: list[Event], asked: Asked) -> None:
        """Apply events behind number `after`, and what was seen then.

        Nothing happens if another worker was faster: what it saw is newer.
        """
        async with self.engine.begin() as connection:
            repository = WorkerRepository(connection)
            if await repository.applied_seq(lock=True) != after:
                return
            news = sorted(events, key=lambda event: event.seq)
            group_ids: set[UUID] = {event.group_id for event in news if event.group_id is not None}
            owners = await repository.owners(group_ids)
            await repository.add_events(news, owners)
            await self._note_losses(connection, news, owners)
            await _tell(EventRepository(EveryOrganization(connection, "the fleet serves all")), news, owners)
            groups = GroupRepository(EveryOrganization(connection, "events are the whole fleet's"))
            now = datetime.now(UTC)
            for view in sorted(asked.views, key=lambda view: view.group_id):
                await groups.observe(view, now)
            await repository.note_seen(asked.seen)
            await repository.note_unseen(asked.unseen)
            if news:
                await repository.set_applied_seq(news[-1].seq)


async def _tell(events: EventRepository, news: Iterable[Event], owners: Mapping[UUID, UUID]) -> None:
    """Tell customers of each change of a status: the coordinator's number of it is the key."""
    for event in news:
        if event.kind != "group_status" or event.status is None or event.group_id not in owners:
            continue
        assert event.group_id is not None
        told = GroupStatusChanged(
            group_id=event.group_id, status=event.status, epoch=event.epoch, message=event.message
        )
        await events.add(owners[event.group_id], EventType.GROUP_STATUS_CHANGED, str(event.seq), told, event.at)
