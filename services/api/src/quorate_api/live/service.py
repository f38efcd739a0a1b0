"""A group's live stream: samples from the hub, and the placement at each change."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any
from uuid import UUID

from sqlalchemy.exc import SQLAlchemyError

from quorate_api import limits
from quorate_api.database.work import Work
from quorate_api.errors import Problem
from quorate_api.groups import service as groups
from quorate_api.http.principal import Principal
from quorate_api.http.services import Services
from quorate_api.partitioned.repository import PartitionedRepository
from quorate_api.telemetry.together import Together

# Finds the caller anew by its credential. Raises `Problem`.
Authenticate = Callable[[Work], Awaitable[Principal]]


async def stream(
    services: Services, principal: Principal, group_id: UUID, authenticate: Authenticate, recent_s: int = 0
) -> AsyncGenerator[bytes]:
    """Samples of the last `recent_s` seconds, then server-sent events until the client disconnects, may not see the
    group any more, or the time is over; the group's deletion is the last event. Raises before the first event if there
    are too many viewers."""
    members = await _members(services, principal, group_id)
    together = Together(len(members))
    async with (
        services.hub.subscribe(members) as queue,
        services.viewers.enter(principal.organization_id, group_id, queue) as watched,
    ):
        yield b"retry: 1000\n\n"
        async for event in _recent(services, members, together, recent_s):
            yield event
        began = sent = checked = time.monotonic()
        shown = None
        while (now := time.monotonic()) - began < limits.LIVE_CONNECTION_S_MAX:
            if now - checked >= limits.LIVE_CALLER_CHECK_S:
                checked = now
                if (problem := await _denied(services, group_id, authenticate)) is not None:
                    yield _event("end", {"code": problem.code.value})
                    return
            if watched.placement is not None and watched.placement != shown:
                shown, sent = watched.placement, now
                yield _event("placement", shown)
                if shown["status"] == "deleted":
                    return
            elif now - sent > limits.LIVE_KEEPALIVE_S:
                sent = now
                yield b": still here\n\n"
            try:
                async with asyncio.timeout(limits.LIVE_WAIT_S):
                    name, data = await queue.get()
            except TimeoutError:
                continue
            if name == "placement":
                continue
            if name == "sample":
                if data["group"] == str(group_id) and shown is not None and data["epoch"] > shown["epoch"]:
                    services.viewers.look_now()  # the sample is of a newer configuration
                if (summed := together.take(data)) is None:
                    continue
                data = summed
            sent = time.monotonic()
            yield _event(name, data)


async def _recent(services: Services, members: list[str], together: Together, recent_s: int) -> AsyncGenerator[bytes]:
    if recent_s:
        for sample in await services.hub.recent(members, int((time.time() - recent_s) * 1_000)):
            if (summed := together.take(sample)) is not None:
                yield _event("sample", summed)


async def _members(services: Services, principal: Principal, group_id: UUID) -> list[str]:
    """The group, or its partitions. One that is added later counts when the page is opened again."""
    async with Work(services.engine) as work:
        await work.enter(principal.organization_id)
        return [str(member.id) for member in await PartitionedRepository(work.scope).members(group_id)]


async def _denied(services: Services, group_id: UUID, authenticate: Authenticate) -> Problem | None:
    try:
        async with Work(services.engine) as work:
            principal = await authenticate(work)
            await groups.visible(work, principal, group_id, deleted=True)
    except Problem as problem:
        return problem
    except (SQLAlchemyError, OSError):
        return None  # nobody can say: charts continue, and the next check comes
    return None


def _event(name: str, data: dict[str, Any]) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()
