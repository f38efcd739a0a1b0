"""`/v1/organization/members`."""

from uuid import UUID

from fastapi import APIRouter, Response

from quorate_api.http.principal import Caller, Transaction
from quorate_api.http.route import ScopedRoute
from quorate_api.members import service
from quorate_api.members.schemas import Member, Members, NewRole

router = APIRouter(prefix="/v1/organization/members", tags=["members"], route_class=ScopedRoute)


@router.get("")
async def list_members(work: Transaction, caller: Caller) -> Members:
    """The organization's members, oldest first."""
    return await service.all_of(work, caller)


@router.patch("/{user_id}")
async def change_role(user_id: UUID, asked: NewRole, work: Transaction, caller: Caller) -> Member:
    """Give a member another role. Only owners make and unmake owners. The member logs in again."""
    return await service.change(work, caller, user_id, asked)


@router.delete("/{user_id}", status_code=204)
async def remove_member(user_id: UUID, work: Transaction, caller: Caller) -> Response:
    """Remove a member from the organization, or leave it."""
    await service.remove(work, caller, user_id)
    return Response(status_code=204)
