"""`/v1/operator/admissions`."""

from typing import Annotated

from fastapi import APIRouter, Query

from quorate_api import limits
from quorate_api.admissions import service
from quorate_api.admissions.schemas import Admission, AdmissionCounts, Outcome
from quorate_api.http.pagination import OperatorPageParameters
from quorate_api.http.principal import Transaction
from quorate_api.http.route import OperatorRoute
from quorate_api.http.schemas import Page

router = APIRouter(prefix="/v1/operator/admissions", tags=["operator"], route_class=OperatorRoute)


@router.get("")
async def list_admissions(
    work: Transaction,
    paging: OperatorPageParameters,
    outcome: Annotated[Outcome | None, Query(description="Only those.")] = None,
) -> Page[Admission]:
    """Groups and guarantees that customers asked for, admitted or refused, newest first. They are kept for 90 days."""
    return await service.page(work, outcome, paging)


@router.get("/counts")
async def count_admissions(
    work: Transaction,
    hours: Annotated[int, Query(ge=1, le=limits.ADMISSIONS_COUNTED_HOURS_MAX, description="Hours to look back.")] = 24,
) -> AdmissionCounts:
    """How often the fleet said yes, and no for which reason."""
    return await service.counts(work, hours)
