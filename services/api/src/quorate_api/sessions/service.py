"""Sessions of people: begin, list, end, and the confirmation that it is still the same person."""

import secrets
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from quorate_api import limits
from quorate_api.credentials import service as credentials
from quorate_api.database.ids import new_id
from quorate_api.database.work import Work
from quorate_api.errors import Code, Problem, not_found
from quorate_api.factors import service as factors
from quorate_api.http.client import Client
from quorate_api.http.principal import Credential, Principal
from quorate_api.http.services import Services
from quorate_api.identities import service as identities
from quorate_api.identities.attempt import Attempt
from quorate_api.passkeys import service as passkeys
from quorate_api.sessions.repository import PersonSessionRepository, SessionRepository
from quorate_api.sessions.schemas import Confirmation, Session, Sessions
from quorate_api.users.repository import UserRepository


async def begin(work: Work, services: Services, user_id: UUID, client: Client) -> tuple[str, Credential]:
    """A session in the organization that was entered, and the secret for its cookie."""
    token, session_id, now = secrets.token_urlsafe(32), new_id(), datetime.now(UTC)
    expires_at = now + timedelta(seconds=limits.SESSION_LIFETIME_S)
    await SessionRepository(work.scope).add(
        id=session_id,
        user_id=user_id,
        token_hmac=services.keys.mac("session", token.encode()),
        created_at=now,
        expires_at=expires_at,
        authenticated_at=now,
        last_seen_at=now,
        address=client.address,
        user_agent=client.user_agent,
    )
    return token, Credential(session_id, expires_at, None)


async def end(work: Work, principal: Principal) -> None:
    """The present one."""
    principal.require_person()
    ended = await SessionRepository(work.scope).end(principal.credential.id)
    await credentials.revoke(work.scope, ended, datetime.now(UTC))


async def end_in_organization(work: Work, user_id: UUID) -> None:
    """All of the person's in the organization that was entered: their permissions have changed."""
    ended = await SessionRepository(work.scope).end_of(user_id)
    await credentials.revoke(work.scope, ended, datetime.now(UTC))


async def all_of(work: Work, principal: Principal) -> Sessions:
    user_id, now = principal.require_person(), datetime.now(UTC)
    rows = await PersonSessionRepository(work.connection).all_of(user_id)
    idle = timedelta(seconds=limits.SESSION_IDLE_S)
    alive = [row for row in rows if row.expires_at > now and now - row.last_seen_at <= idle]
    return Sessions(items=[_session(row, principal) for row in alive])


async def end_one(work: Work, principal: Principal, session_id: UUID) -> None:
    user_id = principal.require_person()
    if not await PersonSessionRepository(work.connection).end(user_id, only=session_id):
        raise not_found("session")


async def end_others(work: Work, principal: Principal) -> None:
    await end_all(work, principal.require_person(), kept=principal.credential.id)


async def end_all(work: Work, user_id: UUID, *, kept: UUID | None = None) -> None:
    """In all organizations."""
    await PersonSessionRepository(work.connection).end(user_id, kept=kept)


async def confirm(
    work: Work, services: Services, principal: Principal, asked: Confirmation, attempt: Attempt | None, client: Client
) -> None:
    """The person has shown again who it is. Raises a 401 for a wrong password, code, passkey or identity."""
    user_id = principal.require_person()
    user = await UserRepository(work.connection).by_id(user_id)
    if asked.passkey is not None:
        if await passkeys.whose(work, services, asked.passkey, client) != user_id:
            raise Problem(Code.CREDENTIALS_INVALID, "It is the passkey of another account.")
    elif asked.identity is not None:
        shown = await identities.show(work, services, attempt, asked.identity, user_id, client)
        await identities.confirm(work, services, principal, shown)
    elif asked.code is not None:
        await check_code(work, services, user, asked.code, client)
    elif await factors.has_totp(work, user_id):
        raise Problem(Code.SECOND_FACTOR_REQUIRED)
    else:
        await check_password(work, services, user, asked.password or "", client)
    await SessionRepository(work.scope).note_confirmed(principal.credential.id, datetime.now(UTC))


async def check_password(work: Work, services: Services, user: Row[Any], password: str, client: Client) -> None:
    """Raises `credentials_invalid`, and `rate_limited` after too many attempts."""
    await services.rates.before_login(user.email, client.address, client.device(services, user.id))
    async with work.outside():
        right = await services.passwords.verify(password, user.password_hash)
    if not right:
        await services.rates.failed_login(user.email, client.address, client.device(services, user.id))
        raise Problem(Code.CREDENTIALS_INVALID, "The password is wrong.")


async def check_code(work: Work, services: Services, user: Row[Any], code: str, client: Client) -> None:
    """The same for a code of the second factor."""
    await services.rates.before_login(user.email, client.address, client.device(services, user.id))
    if not await factors.is_right(work, services, user.id, code):
        await services.rates.failed_login(user.email, client.address, client.device(services, user.id))
        raise Problem(Code.SECOND_FACTOR_WRONG)


def _session(row: Row[Any], principal: Principal) -> Session:
    shown = {name: value for name, value in row._mapping.items() if name in Session.model_fields}
    return Session(**shown, is_current=row.id == principal.credential.id)
