"""Creating, listing, rotating and revoking API keys.

Nobody makes a key that may do more than its maker. A project's key makes no keys: a leaked key must not outlive its
revocation. An organization's key makes keys of projects, for infrastructure as code. Only people make an organization's
keys.
"""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from quorate_api import limits
from quorate_api.access.permissions import OF_ORGANIZATION_KEYS, KeyScope, Permission
from quorate_api.credentials import service as credentials
from quorate_api.database.ids import new_id
from quorate_api.database.work import Work
from quorate_api.errors import Code, Problem, invalid, not_found
from quorate_api.http.pagination import Paging
from quorate_api.http.principal import Principal
from quorate_api.http.schemas import Page
from quorate_api.http.services import Services
from quorate_api.keys.repository import KeyRepository, SecretRepository
from quorate_api.keys.schemas import (
    CreatedKey,
    CreatedOrganizationKey,
    Key,
    NewKey,
    NewOrganizationKey,
    OrganizationKey,
    RotatedKey,
    Rotation,
)
from quorate_api.projects import service as projects
from quorate_api.quotas import service as quotas
from quorate_api.security import api_keys


async def create(work: Work, services: Services, principal: Principal, project_id: UUID, asked: NewKey) -> CreatedKey:
    await projects.visible(work, principal, project_id)
    principal.require(Permission.ADMINISTER)
    principal.require_confirmed()
    user_id = principal.user_id or await _maker_of(work, principal)
    await quotas.lock(work)
    await projects.visible(work, principal, project_id)  # the project may have been deleted while this waited
    await quotas.check(work, quotas.KEYS_PER_PROJECT, adding=1, project_id=project_id)
    key, secret = await _insert(work, services, principal, user_id, asked, project_id)
    return CreatedKey(**key, project_id=project_id, secret=secret)


async def create_for_organization(
    work: Work, services: Services, principal: Principal, asked: NewOrganizationKey
) -> CreatedOrganizationKey:
    user_id = principal.require_person()
    principal.require(Permission.ADMINISTER)
    principal.require_confirmed()
    await quotas.lock(work)
    if await KeyRepository(work.scope).organization_count() >= limits.ORGANIZATION_KEYS_MAX:
        raise Problem(Code.QUOTA_EXCEEDED, f"An organization has at most {limits.ORGANIZATION_KEYS_MAX} such keys.")
    key, secret = await _insert(work, services, principal, user_id, asked, None)
    return CreatedOrganizationKey(**key, secret=secret)


async def page(work: Work, principal: Principal, project_id: UUID, paging: Paging) -> Page[Key]:
    await projects.visible(work, principal, project_id)
    principal.require(Permission.TEAM)
    rows, cursor = await _page(work, project_id, paging)
    return Page(items=[Key(**shown, project_id=project_id) for shown in rows], next_cursor=cursor)


async def organization_page(work: Work, principal: Principal, paging: Paging) -> Page[OrganizationKey]:
    principal.require(Permission.ADMINISTER)
    rows, cursor = await _page(work, None, paging)
    return Page(items=[OrganizationKey(**shown) for shown in rows], next_cursor=cursor)


async def rotate(work: Work, services: Services, principal: Principal, key_id: UUID, asked: Rotation) -> RotatedKey:
    """The key keeps its id, scopes and expiry, and gets another secret."""
    key = await _changeable(work, principal, key_id)
    await services.rates.new_key(str(principal.organization_id))
    now = datetime.now(UTC)
    secrets = SecretRepository(work.scope)
    known = (await secrets.of([key_id]))[key_id]
    if asked.grace_s > 0 and sum(_is_accepted(each, now) for each in known) >= limits.SECRETS_PER_KEY_MAX:
        raise Problem(
            Code.QUOTA_EXCEEDED,
            f"{limits.SECRETS_PER_KEY_MAX} secrets of the key are accepted at this time. Wait until one of them ends, "
            "or rotate with `grace_s` 0, which ends all others.",
        )
    until = now + timedelta(seconds=asked.grace_s)
    ended = await secrets.end(key_id, until)
    if asked.grace_s == 0:
        await credentials.revoke(work.scope, ended, now)
    secret = await _add_secret(work, services, key_id, now)
    return RotatedKey(id=key.id, prefix=_prefix(secret), secret=secret, former_secret_until=until)


async def revoke(work: Work, principal: Principal, key_id: UUID) -> None:
    """Takes effect at once in the API, and within seconds at the servers."""
    await _changeable(work, principal, key_id)
    now = datetime.now(UTC)
    await KeyRepository(work.scope).revoke(key_id, now)
    await credentials.revoke(work.scope, await SecretRepository(work.scope).end(key_id, now), now)


async def _changeable(work: Work, principal: Principal, key_id: UUID) -> Row[Any]:
    """The key, locked, if the caller may change it. Only people change an organization's key."""
    principal.require(Permission.ADMINISTER)
    found = await KeyRepository(work.scope).get(key_id, lock=True)
    if found is None or not principal.sees_project(found.project_id or key_id):
        raise not_found("API key")
    if found.project_id is None:
        principal.require_person()
    principal.require_scopes(_parsed(found.scopes))
    principal.require_confirmed()
    return found


async def _insert(
    work: Work,
    services: Services,
    principal: Principal,
    made_by: UUID,
    asked: NewKey | NewOrganizationKey,
    project_id: UUID | None,
) -> tuple[dict[str, Any], str]:
    """The key as it is shown, and its secret."""
    now = datetime.now(UTC)
    scopes = sorted(set(asked.scopes))
    principal.require_scopes(_parsed(scopes))
    if asked.expires_at is not None and asked.expires_at <= now:
        raise invalid("expires_at", "Must be in the future.")
    await services.rates.new_key(str(principal.organization_id))
    key_id = new_id()
    values = {"name": asked.name, "scopes": scopes, "created_at": now, "expires_at": asked.expires_at}
    await KeyRepository(work.scope).insert(
        **values, id=key_id, project_id=project_id, last_used_at=None, created_by=made_by
    )
    secret = await _add_secret(work, services, key_id, now)
    shown = {"id": key_id, "prefix": _prefix(secret), "last_used_at": None, "former_secret_until": None}
    return values | shown, secret


async def _add_secret(work: Work, services: Services, key_id: UUID, now: datetime) -> str:
    secret = api_keys.generate()
    await SecretRepository(work.scope).insert(
        id=new_id(),
        key_id=key_id,
        secret_hmac=services.keys.mac("api key", secret.encode()),
        under=services.keys.id,
        prefix=_prefix(secret),
        created_at=now,
        ends_at=None,
    )
    return secret


async def _page(work: Work, project_id: UUID | None, paging: Paging) -> tuple[list[dict[str, Any]], str | None]:
    rows = await KeyRepository(work.scope).page(project_id, paging.limit + 1, paging.after_id)
    rows, cursor = paging.cut(rows)
    secrets = await SecretRepository(work.scope).of([row.id for row in rows])
    now = datetime.now(UTC)
    shown = [_shown(row, secrets[row.id], now) for row in rows]
    return shown, cursor


async def _maker_of(work: Work, principal: Principal) -> UUID:
    """The person behind the calling key, who is responsible for the new key too."""
    row = await KeyRepository(work.scope).get(principal.id)
    if row is None:
        raise not_found("API key")
    return UUID(str(row.created_by))


def _shown(row: Row[Any], secrets: list[Row[Any]], now: datetime) -> dict[str, Any]:
    newest, *former = secrets
    ends = [each.ends_at for each in former if _is_accepted(each, now)]
    return {
        "id": row.id,
        "name": row.name,
        "prefix": newest.prefix,
        "scopes": row.scopes,
        "created_at": row.created_at,
        "last_used_at": row.last_used_at,
        "expires_at": row.expires_at,
        "former_secret_until": max(ends, default=None),
    }


def _is_accepted(secret: Row[Any], now: datetime) -> bool:
    return secret.ends_at is None or secret.ends_at > now


def _parsed(scopes: list[str]) -> list[KeyScope]:
    return [KeyScope.parse(text, OF_ORGANIZATION_KEYS) for text in scopes]


def _prefix(secret: str) -> str:
    return secret[: api_keys.SHOWN_LENGTH]
