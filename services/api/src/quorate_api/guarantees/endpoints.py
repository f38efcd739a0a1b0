"""`/v1/projects/{id}/guarantee`."""

from uuid import UUID

from fastapi import APIRouter, Response

from quorate_api.guarantees import service
from quorate_api.guarantees.schemas import GuaranteeQuote, GuaranteeTerms, ProjectGuarantee
from quorate_api.http.principal import Caller, Environment, Transaction
from quorate_api.http.route import ScopedRoute

router = APIRouter(prefix="/v1/projects/{project_id}/guarantee", tags=["projects"], route_class=ScopedRoute)


@router.get("")
async def get_guarantee(project_id: UUID, work: Transaction, services: Environment, caller: Caller) -> ProjectGuarantee:
    """The project's guarantee, and what each group wants and has of it now."""
    return await service.get(work, services, caller, project_id)


@router.put("")
async def put_guarantee(
    project_id: UUID, asked: GuaranteeTerms, work: Transaction, services: Environment, caller: Caller
) -> ProjectGuarantee:
    """Give the project a guarantee, or another one. Groups have it within a second.

    409 `guarantee_refused`: servers have no room for it, and nothing changes. Repeating it is harmless."""
    return await service.put(work, services, caller, project_id, asked)


@router.delete("", status_code=204)
async def delete_guarantee(project_id: UUID, work: Transaction, services: Environment, caller: Caller) -> Response:
    """Take the guarantee back. Groups have their own rates from then on."""
    await service.take_back(work, services, caller, project_id)
    return Response(status_code=204)


@router.post("/quote")
async def quote_guarantee(
    project_id: UUID, asked: GuaranteeTerms, work: Transaction, services: Environment, caller: Caller
) -> GuaranteeQuote:
    """The price of a guarantee, and whether it would be given now. Nothing changes."""
    return await service.quote(work, services, caller, project_id, asked)
