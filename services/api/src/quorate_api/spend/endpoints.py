"""`/v1/spend`."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from starlette.responses import PlainTextResponse

from quorate_api.http.principal import Caller, Transaction
from quorate_api.http.route import ScopedRoute
from quorate_api.spend import exposition, service
from quorate_api.spend.schemas import Spend, SpendDays

router = APIRouter(prefix="/v1/spend", tags=["billing"], route_class=ScopedRoute)


@router.get("")
async def get_spend(work: Transaction, caller: Caller) -> Spend:
    """Get this month's cost so far and by its end, by project and group, and the month before."""
    return await service.spend(work, caller)


@router.get("/days")
async def get_spend_days(
    work: Transaction,
    caller: Caller,
    month: Annotated[str | None, Query(max_length=20, description="YYYY-MM (UTC); default: this month.")] = None,
) -> SpendDays:
    """The cost of each day of a month, by kind."""
    return await service.days(work, caller, month)


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    responses={
        200: {
            "description": "`quorate_spend_micros` by project, group and kind; `quorate_spend_forecast_micros`; "
            '`quorate_budget_micros` by project, `""` for the organization\'s.',
            "content": {exposition.MEDIA_TYPE: {"schema": {"type": "string"}}},
        }
    },
)
async def get_spend_metrics(work: Transaction, caller: Caller) -> Response:
    """This month's spend, its forecast and the budgets as OpenMetrics, for a scraper with an API key."""
    return Response(await service.metrics(work, caller), media_type=exposition.MEDIA_TYPE)
