"""(k) Webhooks: events are given to those that want them, and sent, again with growing pauses where that fails."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import structlog
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from quorate_api import limits
from quorate_api.database.scope import EveryOrganization
from quorate_api.events.message import body_of, message_id
from quorate_api.events.repository import EventRepository
from quorate_api.security.keys import Keys
from quorate_api.tasks import end_task
from quorate_api.webhooks import secrets
from quorate_api.webhooks.repository import DispatchRepository, WebhookSecretRepository
from quorate_api.webhooks.retries import Answer, Next, after
from quorate_api.webhooks.sender import Sender

log = structlog.get_logger(__name__)

REASON = "events of all organizations are delivered alike"
PASSED_BY = Answer(None, "Not sent: the webhook is paused or disabled.", 0)
TAKEN = timedelta(seconds=4 * limits.WEBHOOK_TIMEOUT_S)  # longer than an attempt


@dataclass(slots=True)
class Messenger:
    """Several workers may run it at once: each takes other deliveries. A crash may send one twice, and loses none.

    A slow receiver delays no pass: attempts go on beside it.
    """

    engine: AsyncEngine
    keys: Keys
    sender: Sender
    _running: dict[asyncio.Task[None], UUID] = field(default_factory=dict)  # with the organization

    async def run(self) -> int:
        """One pass. Returns the number of attempts that have begun."""
        now = datetime.now(UTC)
        while await self._dispatch(now):
            pass
        begun = 0
        while some := await self._take(now):
            for row in some:
                task = asyncio.create_task(self._deliver(row))
                self._running[task] = row.organization_id
                task.add_done_callback(self._running.pop)
            begun += len(some)
        return begun

    async def settle(self) -> None:
        """Wait for the running attempts, each of which has a deadline."""
        while self._running:
            await asyncio.wait(list(self._running))

    async def aclose(self) -> None:
        for task in list(self._running):
            await end_task(task)
        await self.sender.aclose()

    async def _dispatch(self, now: datetime) -> int:
        async with self.engine.begin() as connection:
            return await _of_all(connection).dispatch(now, limits.WEBHOOK_EVENTS_AT_ONCE)

    async def _take(self, now: datetime) -> list[Row[Any]]:
        free = limits.WEBHOOK_SENDS_AT_ONCE - len(self._running)
        if free <= 0:
            return []
        # An organization waits until all of its running attempts are over: it never has twice its share.
        busy = Counter(self._running.values())
        async with self.engine.begin() as connection:
            return await _of_all(connection).take(
                now, now + TAKEN, free, per_organization=limits.WEBHOOK_SENDS_PER_ORGANIZATION, busy=busy
            )

    async def _deliver(self, delivery: Row[Any]) -> None:
        try:
            await self._attempt(delivery)
        except Exception:  # it is taken again a minute later
            log.exception("a webhook's event was not sent", delivery_id=str(delivery.id))

    async def _attempt(self, delivery: Row[Any]) -> None:
        async with self.engine.begin() as connection:
            parcel = await _of_all(connection).parcel(delivery)
            if parcel is None:
                return  # deleted meanwhile
            webhook, event = parcel
            if webhook.status != "enabled" and event.for_webhook_id is None:
                await _of_all(connection).note(delivery.id, PASSED_BY, Next("failed", None), datetime.now(UTC))
                return  # a replay sends it, once the webhook is enabled
            every = EveryOrganization(connection, REASON)
            known = (await WebhookSecretRepository(every).of([webhook.id])).get(webhook.id, [])
        now = datetime.now(UTC)
        signing = [
            secrets.opened(self.keys, row.id, row.sealed) for row in known if row.ends_at is None or row.ends_at > now
        ]
        answer = await self.sender.send(webhook.url, message_id(event.id), body_of(event), signing)
        now = datetime.now(UTC)
        async with self.engine.begin() as connection:
            repository = _of_all(connection)
            await repository.note(delivery.id, answer, after(delivery.attempts, answer, now), now)
            await repository.note_health(webhook.id, answer, now)


async def forget_events(engine: AsyncEngine, now: datetime | None = None) -> int:
    """Returns the number of events that are no longer kept."""
    before = (now or datetime.now(UTC)) - timedelta(seconds=limits.EVENTS_KEPT_S)
    async with engine.begin() as connection:
        return await EventRepository(EveryOrganization(connection, REASON)).forget(before)


def _of_all(connection: AsyncConnection) -> DispatchRepository:
    return DispatchRepository(EveryOrganization(connection, REASON))
