"""`/v1/quotas`."""

from typing import Annotated

from fastapi import APIRouter, Path

from quorate_api.access.permissions import Permission
from quorate_api.http.principal import Caller, Transaction
from quorate_api.http.route import ScopedRoute
from quorate_api.quotas import service
from quorate_api.quotas.schemas import CODE, QuotaRequest, Quotas

router = APIRouter(prefix="/v1/quotas", tags=["quotas"], route_class=ScopedRoute)

QuotaCode = Annotated[str, Path(pattern=CODE)]


@router.get("")
async def get_quotas(work: Transaction, caller: Caller) -> Quotas:
    """The organization's quotas and their use."""
    caller.require(Permission.VIEW)
    caller.require_whole_organization()
    return await service.all_of(work)


@router.put("/{quota}/request")
async def request_quota(quota: QuotaCode, asked: QuotaRequest, work: Transaction, caller: Caller) -> Quotas:
    """Ask the operators for a greater quota. Another request takes the place of the one before."""
    return await service.request(work, caller, quota, asked)


@router.delete("/{quota}/request")
async def withdraw_quota_request(quota: QuotaCode, work: Transaction, caller: Caller) -> Quotas:
    """Withdraw a request for a greater quota."""
    return await service.withdraw(work, caller, quota)
