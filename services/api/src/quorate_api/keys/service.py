"""Making, listing and revoking API keys. Only people do it: a leaked key must not make more keys."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from quorate_api.accounts.repository import OrganizationRepository
from quorate_api.database.ids import new_id
from quorate_api.database.work import Work
from quorate_api.errors import not_found
from quorate_api.http.pagination import Paging
from quorate_api.http.principal import Permission, Principal
from quorate_api.http.schemas import Page
from quorate_api.http.services import Services
from quorate_api.keys.repository import KeyRepository
from quorate_api.keys.schemas import CreatedKey, Key, NewKey
from quorate_api.projects import service as projects
from quorate_api.quotas import service as quotas
from quorate_api.security import api_keys


async def create(work: Work, services: Services, principal: Principal, project_id: UUID, asked: NewKey) -> CreatedKey:
    await projects.visible(work, principal, project_id)
    user_id = principal.require_person()
    principal.require(Permission.ADMINISTER)
    await OrganizationRepository(work.scope).lock()
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
    """At once for the API; tokens that the key got before end within the hour (sdk/contract/handle.md)."""
    principal.require_person()
    principal.require(Permission.ADMINISTER)
    if not await KeyRepository(work.scope).revoke(key_id, datetime.now(UTC)):
        raise not_found("API key")


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
