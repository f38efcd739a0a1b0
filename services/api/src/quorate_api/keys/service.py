"""Creating, listing and revoking API keys.

A project's key creates no keys: a leaked key must not outlive its revocation. An organization's key creates keys of
projects, for infrastructure as code. Only people create an organization's keys.
"""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from quorate_api import limits
from quorate_api.database.ids import new_id
from quorate_api.database.work import Work
from quorate_api.errors import Code, Problem, not_found
from quorate_api.http.pagination import Paging
from quorate_api.http.principal import Permission, Principal
from quorate_api.http.schemas import Page
from quorate_api.http.services import Services
from quorate_api.keys.repository import KeyRepository
from quorate_api.keys.schemas import (
    CreatedKey,
    CreatedOrganizationKey,
    Key,
    NewKey,
    NewOrganizationKey,
    OrganizationKey,
)
from quorate_api.projects import service as projects
from quorate_api.quotas import service as quotas
from quorate_api.security import api_keys

# Infrastructure as code administers groups. It has no need to see their entries.
ORGANIZATION_KEY_SCOPES = [str(Permission.ADMINISTER), str(Permission.MANAGE)]


async def create(work: Work, services: Services, principal: Principal, project_id: UUID, asked: NewKey) -> CreatedKey:
    await projects.visible(work, principal, project_id)
    principal.require(Permission.ADMINISTER)
    user_id = principal.user_id or await _maker_of(work, principal)
    await quotas.lock(work)
    await projects.visible(work, principal, project_id)  # the project may have been deleted while this waited
    await quotas.check(work, quotas.KEYS_PER_PROJECT, adding=1, project_id=project_id)
    secret = api_keys.generate()
    key = Key(
        id=new_id(),
        project_id=project_id,
        name=asked.name,
        prefix=secret[: api_keys.SHOWN_LENGTH],
        scopes=sorted(set(asked.scopes)),
        created_at=datetime.now(UTC),
        last_used_at=None,
    )
    secret_hmac = services.keys.mac("api key", secret.encode())
    await KeyRepository(work.scope).insert(**key.model_dump(), secret_hmac=secret_hmac, created_by=user_id)
    return CreatedKey(**key.model_dump(), secret=secret)


async def page(work: Work, principal: Principal, project_id: UUID, paging: Paging) -> Page[Key]:
    await projects.visible(work, principal, project_id)
    rows = await KeyRepository(work.scope).page(project_id, paging.limit + 1, paging.after_id)
    more = len(rows) > paging.limit
    rows = rows[: paging.limit]
    return Page(items=[_key(row) for row in rows], next_cursor=paging.next_cursor(rows[-1].id.bytes) if more else None)


async def revoke(work: Work, principal: Principal, key_id: UUID) -> None:
    """Takes effect at once in the API. Tokens issued before expire within the hour (sdk/contract/handle.md)."""
    principal.require(Permission.ADMINISTER)
    found = await KeyRepository(work.scope).get(key_id)
    if found is not None and found.project_id is None:
        principal.require_person()
    if not await KeyRepository(work.scope).revoke(key_id, datetime.now(UTC)):
        raise not_found("API key")


async def create_for_organization(
    work: Work, services: Services, principal: Principal, asked: NewOrganizationKey
) -> CreatedOrganizationKey:
    user_id = principal.require_person()
    principal.require(Permission.ADMINISTER)
    await quotas.lock(work)
    if await KeyRepository(work.scope).organization_count() >= limits.ORGANIZATION_KEYS_MAX:
        raise Problem(Code.QUOTA_EXCEEDED, f"An organization has at most {limits.ORGANIZATION_KEYS_MAX} such keys.")
    secret = api_keys.generate()
    key = OrganizationKey(
        id=new_id(),
        name=asked.name,
        prefix=secret[: api_keys.SHOWN_LENGTH],
        created_at=datetime.now(UTC),
        last_used_at=None,
    )
    await KeyRepository(work.scope).insert(
        **key.model_dump(),
        project_id=None,
        scopes=ORGANIZATION_KEY_SCOPES,
        secret_hmac=services.keys.mac("api key", secret.encode()),
        created_by=user_id,
    )
    return CreatedOrganizationKey(**key.model_dump(), secret=secret)


async def organization_page(work: Work, principal: Principal, paging: Paging) -> Page[OrganizationKey]:
    principal.require(Permission.ADMINISTER)
    rows = await KeyRepository(work.scope).organization_page(paging.limit + 1, paging.after_id)
    more = len(rows) > paging.limit
    rows = rows[: paging.limit]
    items = [
        OrganizationKey(
            id=row.id, name=row.name, prefix=row.prefix, created_at=row.created_at, last_used_at=row.last_used_at
        )
        for row in rows
    ]
    return Page(items=items, next_cursor=paging.next_cursor(rows[-1].id.bytes) if more else None)


async def _maker_of(work: Work, principal: Principal) -> UUID:
    """The person behind the calling key, who is responsible for the new key too."""
    row = await KeyRepository(work.scope).get(principal.id)
    if row is None:
        raise not_found("API key")
    return UUID(str(row.created_by))


def _key(row: Row[Any]) -> Key:
    return Key(
        id=row.id,
        project_id=row.project_id,
        name=row.name,
        prefix=row.prefix,
        scopes=row.scopes,
        created_at=row.created_at,
        last_used_at=row.last_used_at,
    )
