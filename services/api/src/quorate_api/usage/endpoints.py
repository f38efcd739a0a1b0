"""`/v1/groups/{id}/usage` and `/metrics`."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from starlette.responses import Response

from quorate_api import limits
from quorate_api.http.answer import as_json
from quorate_api.http.principal import Caller, Transaction
from quorate_api.http.route import ScopedRoute
from quorate_api.usage import service
from quorate_api.usage.schemas import Metrics, Usage

router = APIRouter(prefix="/v1/groups/{group_id}", tags=["reports"], route_class=ScopedRoute)


@router.get("/usage", response_model=Usage)
async def get_usage(
    group_id: UUID,
    work: Transaction,
    caller: Caller,
    from_: Annotated[datetime | None, Query(alias="from", description="RFC 3339; default: a day before `to`.")] = None,
    to: Annotated[datetime | None, Query(description="RFC 3339; default: now. At most 7 days after `from`.")] = None,
) -> Response:
    """The group's usage in whole minutes, of the last eight days and the present one."""
    return as_json(await service.usage(work, caller, group_id, from_, to))


@router.get("/metrics")
async def get_metrics(
    group_id: UUID,
    work: Transaction,
    caller: Caller,
    minutes: Annotated[int, Query(ge=1, le=limits.METRICS_MINUTES_MAX)] = 60,
) -> Metrics:
    """Per minute: reserved, offered, committed, throttled, latency."""
    return await service.metrics(work, caller, group_id, minutes)
