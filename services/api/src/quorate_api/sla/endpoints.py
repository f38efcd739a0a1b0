"""`/v1/groups/{id}/sla`."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from quorate_api.http.principal import Caller, Transaction
from quorate_api.http.route import ScopedRoute
from quorate_api.sla import service
from quorate_api.sla.schemas import SlaReport

router = APIRouter(prefix="/v1/groups/{group_id}", tags=["reports"], route_class=ScopedRoute)


@router.get("/sla")
async def get_sla_report(
    group_id: UUID,
    work: Transaction,
    caller: Caller,
    month: Annotated[str | None, Query(max_length=20, description="YYYY-MM (UTC); default: this month.")] = None,
) -> SlaReport:
    """The SLA's attainment in a month, clause by clause, with the credits owed."""
    return await service.report(work, caller, group_id, month)
