"""A group's live stream: samples from the hub, and the placement at each change."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

from sqlalchemy import Row
from sqlalchemy.exc import SQLAlchemyError

from quorate_api import limits
from quorate_api.database.work import Work
from quorate_api.groups.repository import GroupRepository
from quorate_api.http.principal import Principal
from quorate_api.http.services import Services


async def stream(services: Services, principal: Principal, group_id: UUID) -> AsyncIterator[bytes]:
    """Server-sent events until the client disconnects, the group is deleted, or the time is over."""
    end = time.monotonic() + limits.LIVE_CONNECTION_S_MAX
    shown, looked, sent = None, 0.0, time.monotonic()
    async with services.hub.subscribe(str(group_id)) as queue:
        yield b"retry: 1000\n\n"
        while time.monotonic() < end:
            now = time.monotonic()
            if now - looked >= limits.LIVE_PLACEMENT_POLL_S:
                looked = now
                placement = await _placement(services, principal, group_id)
                if placement is not None and placement != shown:
                    shown, sent = placement, now
                    yield _event("placement", placement)
                    if placement["status"] == "deleted":
                        return
            try:
                async with asyncio.timeout(max(0.01, limits.LIVE_PLACEMENT_POLL_S - (time.monotonic() - looked))):
                    name, data = await queue.get()
            except TimeoutError:
                if time.monotonic() - sent > limits.LIVE_KEEPALIVE_S:
                    sent = time.monotonic()
                    yield b": still here\n\n"
                continue
            sent = time.monotonic()
            if shown is not None and data.get("epoch", 0) > shown["epoch"]:
                looked = 0.0  # the sample is of a newer configuration: read the placement at once
            yield _event(name, data)


async def _placement(services: Services, principal: Principal, group_id: UUID) -> dict[str, Any] | None:
    try:
        async with Work(services.engine) as work:
            await work.enter(principal.organization_id)
            row = await GroupRepository(work.scope).get(group_id)
    except SQLAlchemyError:
        return None  # charts continue without the placement
    return _shown(row) if row is not None else {"epoch": 0, "status": "deleted", "replicas": [], "learners": []}


def _shown(row: Row[Any]) -> dict[str, Any]:
    return {"epoch": row.epoch, "status": row.status, "replicas": row.replicas, "learners": row.learners}


def _event(name: str, data: dict[str, Any]) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()
