"""`/v1/groups/{id}/sla` and its bad minutes."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from quorate_api.http.pagination import PageParameters
from quorate_api.http.principal import Caller, Transaction
from quorate_api.http.route import ScopedRoute
from quorate_api.http.schemas import Page
from quorate_api.sla import service
from quorate_api.sla.schemas import SlaMinute, SlaReport

router = APIRouter(prefix="/v1/groups/{group_id}", tags=["reports"], route_class=ScopedRoute)


Month = Annotated[str | None, Query(max_length=20, description="YYYY-MM (UTC); default: this month.")]


@router.get("/sla")
async def get_sla_report(group_id: UUID, work: Transaction, caller: Caller, month: Month = None) -> SlaReport:
    """The SLA's attainment in a month, clause by clause, with the credits owed."""
    return await service.report(work, caller, group_id, month)


@router.get("/sla/bad-minutes")
async def list_bad_minutes(
    group_id: UUID, work: Transaction, caller: Caller, paging: PageParameters, month: Month = None
) -> Page[SlaMinute]:
    """The minutes of a month that missed a clause, oldest first, with what was measured in each."""
    return await service.bad_minutes(work, caller, group_id, month, paging)
