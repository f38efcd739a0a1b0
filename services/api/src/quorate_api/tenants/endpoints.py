"""`/v1/operator/organizations/{id}`: views and quotas. `/v1/operator/quota-requests`."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Response

from quorate_api.http.principal import Environment, Transaction
from quorate_api.http.route import OperatorRoute
from quorate_api.http.staff import CallingOperator
from quorate_api.quotas.schemas import CODE, Quotas
from quorate_api.tenants import service
from quorate_api.tenants.schemas import Decline, NewLimit, NewView, OpenRequests, View

router = APIRouter(prefix="/v1/operator", tags=["operator"], route_class=OperatorRoute)

QuotaCode = Annotated[str, Path(pattern=CODE)]


@router.post("/organizations/{organization_id}/views", status_code=201)
async def view_organization(
    organization_id: UUID, asked: NewView, work: Transaction, services: Environment, operator: CallingOperator
) -> View:
    """A token to look at an organization as its members do, for half an hour. It changes nothing and reads no entry."""
    assert asked.reason, "the audit logs have the request"
    return await service.view(work, services, operator, organization_id)


@router.get("/organizations/{organization_id}/quotas")
async def get_organization_quotas(organization_id: UUID, work: Transaction) -> Quotas:
    """An organization's quotas and their use."""
    return await service.quotas_of(work, organization_id)


@router.put("/organizations/{organization_id}/quotas/{quota}")
async def set_organization_quota(
    organization_id: UUID, quota: QuotaCode, asked: NewLimit, work: Transaction, services: Environment
) -> Quotas:
    """Set a quota of an organization. It answers a request for more, and its owners get mail then."""
    return await service.set_limit(work, services, organization_id, quota, asked.limit)


@router.delete("/organizations/{organization_id}/quotas/{quota}")
async def reset_organization_quota(organization_id: UUID, quota: QuotaCode, work: Transaction) -> Quotas:
    """Use the default for a quota of an organization again."""
    return await service.use_default(work, organization_id, quota)


@router.post("/organizations/{organization_id}/quotas/{quota}/decline", status_code=204)
async def decline_quota_request(
    organization_id: UUID, quota: QuotaCode, asked: Decline, work: Transaction, services: Environment
) -> Response:
    """Decline a request for more. Its owners get the reason by mail."""
    await service.decline(work, services, organization_id, quota, asked.reason)
    return Response(status_code=204)


@router.get("/quota-requests")
async def list_quota_requests(work: Transaction) -> OpenRequests:
    """Requests for greater quotas that wait for an answer, oldest first."""
    return await service.requests(work)
