"""Members and their roles. Only owners touch owners, and an organization keeps one."""

from typing import Any
from uuid import UUID

from sqlalchemy import Row

from quorate_api.access.permissions import Permission
from quorate_api.database.work import Work
from quorate_api.errors import Code, Problem, not_found
from quorate_api.http.principal import Principal
from quorate_api.members.schemas import Member, Members, NewRole
from quorate_api.organizations.repository import OrganizationRepository
from quorate_api.quotas import service as quotas
from quorate_api.sessions import service as sessions

OWNER = "owner"


async def all_of(work: Work, principal: Principal) -> Members:
    principal.require(Permission.TEAM)
    rows = await OrganizationRepository(work.scope).members()
    return Members(items=[_member(row, principal) for row in rows])


async def change(work: Work, principal: Principal, user_id: UUID, asked: NewRole) -> Member:
    """The person's sessions in the organization end, and with them what the former role allowed."""
    repository = OrganizationRepository(work.scope)
    role = await _changeable(work, principal, user_id)
    if OWNER in (role, asked.role):
        principal.require(Permission.OWN)
    if role != asked.role:
        await _require_another_owner(repository, role)
        await repository.set_role(user_id, asked.role)
        await sessions.end_in_organization(work, user_id)
    (row,) = [each for each in await repository.members() if each.user_id == user_id]
    return _member(row, principal)


async def remove(work: Work, principal: Principal, user_id: UUID) -> None:
    """Everybody may leave. API keys that the person has made stay: they are the organization's."""
    repository = OrganizationRepository(work.scope)
    role = await _changeable(work, principal, user_id, may_be_own=True)
    if role == OWNER:
        principal.require(Permission.OWN)
    await _require_another_owner(repository, role)
    await repository.remove(user_id)
    await sessions.end_in_organization(work, user_id)


async def _changeable(work: Work, principal: Principal, user_id: UUID, *, may_be_own: bool = False) -> str:
    """The member's role. The organization's row is locked, so that no two owners leave at once."""
    own_id = principal.require_person()
    if not (may_be_own and own_id == user_id):
        principal.require(Permission.ADMINISTER)
    principal.require_confirmed()
    await quotas.lock(work)
    role = await OrganizationRepository(work.scope).role_of(user_id)
    if role is None:
        raise not_found("member")
    return role


async def _require_another_owner(repository: OrganizationRepository, role: str) -> None:
    if role == OWNER and await repository.count(OWNER) == 1:
        raise Problem(Code.LAST_OWNER)


def _member(row: Row[Any], principal: Principal) -> Member:
    return Member(
        user_id=row.user_id,
        email=row.email,
        role=row.role,
        joined_at=row.created_at,
        is_you=row.user_id == principal.user_id,
    )
