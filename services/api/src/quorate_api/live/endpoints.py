"""`/v1/groups/{id}/live`."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request
from starlette.responses import StreamingResponse

from quorate_api import limits
from quorate_api.groups import service as groups
from quorate_api.http.principal import Caller, Environment, Transaction, authenticate
from quorate_api.http.route import ScopedRoute
from quorate_api.live import service

router = APIRouter(prefix="/v1/groups/{group_id}", tags=["reports"], route_class=ScopedRoute)


@router.get(
    "/live",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Server-sent events: `sample` each second, `placement` at the start and after each change, "
            "`source` when the telemetry bus goes away or comes back, and samples stop or resume; `end` with the "
            "problem's `code` when the caller may not see the group any more.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    },
)
async def stream_group(
    group_id: UUID,
    request: Request,
    work: Transaction,
    services: Environment,
    caller: Caller,
    recent_s: Annotated[
        int,
        Query(
            ge=0,
            le=limits.LIVE_RECENT_S_MAX,
            description="Begin with samples of so many seconds before now, as far as they are known.",
        ),
    ] = 0,
) -> StreamingResponse:
    """Watch the group, live."""
    await groups.visible(work, caller, group_id)
    events = service.stream(services, caller, group_id, lambda work: authenticate(request, work), recent_s)
    first = await anext(events)  # a refusal comes before the answer has begun
    return StreamingResponse(_again(first, events), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


async def _again(first: bytes, events: AsyncGenerator[bytes]) -> AsyncIterator[bytes]:
    async with aclosing(events):
        yield first
        async for event in events:
            yield event
