"""`/v1/quotas`."""

from fastapi import APIRouter

from quorate_api.access.permissions import Permission
from quorate_api.http.principal import Caller, Transaction
from quorate_api.http.route import ScopedRoute
from quorate_api.quotas import service
from quorate_api.quotas.schemas import Quotas

router = APIRouter(prefix="/v1/quotas", tags=["quotas"], route_class=ScopedRoute)


@router.get("")
async def get_quotas(work: Transaction, caller: Caller) -> Quotas:
    """The organization's quotas and their use."""
    caller.require(Permission.VIEW)
    caller.require_whole_organization()
    return await service.all_of(work)
