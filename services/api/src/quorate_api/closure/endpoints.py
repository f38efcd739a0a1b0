"""`/v1/organization`: its standing, export and closure. `/v1/operator/organizations`."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import AfterValidator
from starlette.responses import StreamingResponse

from quorate_api.access.permissions import Permission
from quorate_api.closure import export, service
from quorate_api.closure.schemas import Closure, OrganizationStanding, Suspension, Tenant
from quorate_api.http.pagination import OperatorPageParameters
from quorate_api.http.principal import Caller, Environment, Transaction
from quorate_api.http.route import OperatorRoute, ScopedRoute
from quorate_api.http.schemas import Page, printable

router = APIRouter(prefix="/v1/organization", tags=["organization"], route_class=ScopedRoute)
operator_router = APIRouter(prefix="/v1/operator/organizations", tags=["operator"], route_class=OperatorRoute)


@router.get("")
async def get_organization(work: Transaction, _caller: Caller) -> OrganizationStanding:
    """The organization: whether it is active, suspended or closing."""
    return await service.get(work)


@router.get(
    "/export",
    response_class=StreamingResponse,
    responses={200: {"content": {"application/jsonl": {"schema": {"type": "string"}}}, "description": "JSON lines."}},
)
async def export_organization(services: Environment, caller: Caller) -> StreamingResponse:
    """The organization's data, without logs and secrets, for its owners. The last line has the number of lines before
    it, and the SHA-256 of their bytes."""
    caller.require_person()
    caller.require(Permission.OWN)
    caller.require_confirmed()
    headers = {"Content-Disposition": 'attachment; filename="quorate-organization.jsonl"'}
    lines = export.lines(services, caller.organization_id)
    return StreamingResponse(lines, media_type="application/jsonl", headers=headers)


@router.post("/closure", status_code=202)
async def close_organization(
    asked: Closure, work: Transaction, services: Environment, caller: Caller
) -> OrganizationStanding:
    """Close the organization, after a time in which an owner can reopen it. Its groups are suspended at once."""
    return await service.close(work, services, caller, asked)


@router.delete("/closure")
async def reopen_organization(work: Transaction, services: Environment, caller: Caller) -> OrganizationStanding:
    """Call off the closing. Groups accept appends again within seconds."""
    return await service.reopen(work, services, caller)


@operator_router.get("")
async def list_organizations(
    work: Transaction,
    paging: OperatorPageParameters,
    search: Annotated[
        Annotated[str, AfterValidator(printable)] | None,
        Query(min_length=1, max_length=254, description="A part of the name, an id, or a member's address."),
    ] = None,
) -> Page[Tenant]:
    """All organizations, newest first, with their reservations."""
    return await service.tenants(work, search, paging)


@operator_router.put("/{organization_id}/suspension")
async def suspend_organization(
    organization_id: UUID, asked: Suspension, work: Transaction, services: Environment
) -> OrganizationStanding:
    """Suspend an organization: its groups refuse appends and reads within seconds, and nothing is deleted."""
    return await service.suspend(work, services, organization_id, asked)


@operator_router.delete("/{organization_id}/suspension")
async def end_suspension(organization_id: UUID, work: Transaction, services: Environment) -> OrganizationStanding:
    """End a suspension."""
    return await service.end_suspension(work, services, organization_id)
