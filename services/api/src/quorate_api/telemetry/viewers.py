"""Everybody who watches groups over this process: bounded, and told of placements by one reader for all.

The reader runs while there are viewers. It asks once for each organization that has any, however many there are.
"""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import structlog
from sqlalchemy.exc import SQLAlchemyError

from quorate_api import limits
from quorate_api.errors import Code, Problem
from quorate_api.tasks import end_task
from quorate_api.telemetry.hub import Event, offer

log = structlog.get_logger(__name__)

Placement = dict[str, Any]
# The placements of those of an organization's groups that are still there.
Read = Callable[[UUID, Collection[UUID]], Awaitable[dict[UUID, Placement]]]
DELETED: Placement = {"epoch": 0, "status": "deleted", "replicas": [], "learners": []}
# Wakes a viewer; the placement itself is in `Watched`, where nothing can push it out.
WAKE: Event = ("placement", {})


@dataclass(slots=True)
class Watched:
    """A group that somebody watches. `placement`: None until it was read for the first time."""

    placement: Placement | None = None
    queues: list[asyncio.Queue[Event]] = field(default_factory=list)

    def show(self, placement: Placement) -> None:
        if placement != self.placement:
            self.placement = placement
            for queue in self.queues:
                offer(queue, WAKE)


class Viewers:
    def __init__(self, read: Read) -> None:
        self._placements = read
        self._watched: dict[UUID, dict[UUID, Watched]] = defaultdict(dict)
        self._count = 0
        self._due = asyncio.Event()
        self._reader: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def enter(self, organization_id: UUID, group_id: UUID, queue: asyncio.Queue[Event]) -> AsyncIterator[Watched]:
        """The caller watches the group. Raises `overloaded`, and `rate_limited` if its organization has enough."""
        self._admit(organization_id)
        watched = self._watched[organization_id].setdefault(group_id, Watched())
        watched.queues.append(queue)
        self._count += 1
        if watched.placement is None:
            self.look_now()
        self._keep_reading()
        try:
            yield watched
        finally:
            self._count -= 1
            watched.queues.remove(queue)
            if not watched.queues:
                del self._watched[organization_id][group_id]
            if not self._watched[organization_id]:
                del self._watched[organization_id]

    def look_now(self) -> None:
        """A placement may have changed: read them all before the next one is due."""
        self._due.set()
        self._keep_reading()

    def _keep_reading(self) -> None:
        if self._count and (self._reader is None or self._reader.done()):
            self._reader = asyncio.create_task(self._read(), name="placement reader")

    async def aclose(self) -> None:
        if self._reader is not None:
            await end_task(self._reader)
            self._reader = None

    def _admit(self, organization_id: UUID) -> None:
        if self._count >= limits.LIVE_SUBSCRIBERS_MAX:
            raise Problem(Code.OVERLOADED, "Too many live connections on this server.", retry_after_s=10)
        of_organization = sum(len(each.queues) for each in self._watched.get(organization_id, {}).values())
        if of_organization >= limits.LIVE_SUBSCRIBERS_PER_ORGANIZATION_MAX:
            text = f"Your organization has {of_organization} live connections, as many as it may: close one."
            raise Problem(Code.RATE_LIMITED, text, retry_after_s=10)

    async def _read(self) -> None:
        """Until nobody watches."""
        while self._count:
            self._due.clear()
            for organization_id in list(self._watched):
                await self._look(organization_id)
            await asyncio.sleep(limits.LIVE_PLACEMENT_GAP_S)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(limits.LIVE_PLACEMENT_POLL_S):
                    await self._due.wait()

    async def _look(self, organization_id: UUID) -> None:
        watched = dict(self._watched.get(organization_id, {}))
        try:
            found = await self._placements(organization_id, list(watched))
        except (SQLAlchemyError, OSError) as error:
            log.warning("placements are not read", error=repr(error)[:200])
            return  # charts continue with the last ones
        for group_id, one in watched.items():
            one.show(found.get(group_id, DELETED))
