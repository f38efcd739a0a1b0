"""`/v1/operator/groups/{id}/corrections`."""

from uuid import UUID

from fastapi import APIRouter, Request

from quorate_api.adjustments import service
from quorate_api.adjustments.schemas import Correction, NewCorrection
from quorate_api.http.pagination import OperatorPageParameters
from quorate_api.http.principal import Transaction
from quorate_api.http.route import OperatorRoute
from quorate_api.http.schemas import Page
from quorate_api.http.staff import Operator

router = APIRouter(prefix="/v1/operator/groups/{group_id}", tags=["operator"], route_class=OperatorRoute)


@router.post("/corrections", status_code=201)
async def create_correction(
    group_id: UUID, asked: NewCorrection, work: Transaction, operator: Operator, request: Request
) -> Correction:
    """Correct a group's use or SLA minutes. Needs an Idempotency-Key. The customer sees it, with its reason."""
    return await service.enter(work, group_id, asked, operator, repeatable=request.state.operation_id is not None)


@router.get("/corrections")
async def list_corrections(group_id: UUID, work: Transaction, paging: OperatorPageParameters) -> Page[Correction]:
    """The corrections of a group, newest first."""
    return await service.page(work, group_id, paging)
