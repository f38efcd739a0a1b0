"""Signing up, logging in, logging out."""

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from quorate_api import limits
from quorate_api.access.permissions import Allowed
from quorate_api.accounts.repository import OrganizationRepository, UserRepository
from quorate_api.accounts.schemas import Login, Me, Organization, SignedUp, SignUp, User
from quorate_api.credentials import service as credentials
from quorate_api.database.ids import new_id
from quorate_api.database.work import Work
from quorate_api.errors import Code, FieldError, Problem
from quorate_api.http.principal import Credential, Principal, csrf_token
from quorate_api.http.services import Services
from quorate_api.projects.repository import ProjectRepository
from quorate_api.projects.schemas import Project

FIRST_PROJECT = "default"


@dataclass(frozen=True, slots=True)
class Opened:
    """A new session: the body of the answer, and the secret for the cookie."""

    body: SignedUp | Me
    session_token: str


async def sign_up(work: Work, services: Services, asked: SignUp, address: str) -> Opened:
    await services.rates.signup(address)
    async with work.outside():  # argon2 takes half a second and needs no connection
        password_hash = await services.passwords.hash(asked.password)
    now = datetime.now(UTC)
    user_id, organization_id, project_id = new_id(), new_id(), new_id()
    if not await UserRepository(work.connection).insert(user_id, asked.email, password_hash, now):
        errors = [FieldError(field="email", message="There is an account with this e-mail.")]
        raise Problem(Code.EMAIL_TAKEN, errors=errors)
    scope = await work.enter(organization_id)
    organizations = OrganizationRepository(scope)
    await organizations.insert(asked.organization, now)
    await organizations.add_member(user_id, "owner", now)
    await ProjectRepository(scope).insert(project_id, FIRST_PROJECT, now)
    token, _ = await _open_session(work, services, user_id)
    body = SignedUp(
        user=User(id=user_id, email=asked.email, created_at=now),
        organization=Organization(id=organization_id, name=asked.organization, created_at=now),
        project=Project(id=project_id, name=FIRST_PROJECT, created_at=now),
        csrf_token=csrf_token(services, token),
    )
    return Opened(body, token)


async def log_in(work: Work, services: Services, asked: Login, address: str) -> Opened:
    await services.rates.before_login(asked.email, address)
    user = await UserRepository(work.connection).by_email(asked.email)
    async with work.outside():
        right = await services.passwords.verify(asked.password, user.password_hash if user else None)
    if user is None or not right:
        await services.rates.failed_login(asked.email, address)
        raise Problem(Code.CREDENTIALS_INVALID, "The e-mail or the password is wrong.")
    memberships = await UserRepository(work.connection).memberships(user.id)
    if not memberships:
        raise Problem(Code.PERMISSION_DENIED, "This account belongs to no organization any more.")
    membership = memberships[0]
    await work.enter(membership.organization_id)
    token, credential = await _open_session(work, services, user.id)
    principal = Principal(
        user.id,
        "user",
        membership.organization_id,
        Allowed.of_role(membership.role),
        credential,
        role=membership.role,
        user_id=user.id,
        csrf_token=csrf_token(services, token),
    )
    return Opened(await me(work, principal), token)


async def log_out(work: Work, services: Services, principal: Principal, session_token: str | None) -> None:
    principal.require_person()
    if session_token:
        token_hmac = services.keys.mac("session", session_token.encode())
        ended = await OrganizationRepository(work.scope).end_session(token_hmac)
        await credentials.revoke(work.scope, ended, datetime.now(UTC))


async def me(work: Work, principal: Principal) -> Me:
    organization = await OrganizationRepository(work.scope).get()
    user = await UserRepository(work.connection).by_id(principal.user_id) if principal.user_id else None
    projects = await ProjectRepository(work.scope).page(limits.PAGE_LIMIT_MAX, None, principal.project_id)
    return Me(
        user=User(id=user.id, email=user.email, created_at=user.created_at) if user else None,
        organization=Organization(
            id=organization.organization_id, name=organization.name, created_at=organization.created_at
        ),
        role=principal.role,
        permissions=principal.allowed.names(),
        projects=[Project(id=row.id, name=row.name, created_at=row.created_at) for row in projects],
        csrf_token=principal.csrf_token,
    )


async def _open_session(work: Work, services: Services, user_id: UUID) -> tuple[str, Credential]:
    """A new session, and the secret for its cookie."""
    token = secrets.token_urlsafe(32)
    now = datetime.now(UTC)
    expires_at = now + timedelta(seconds=limits.SESSION_LIFETIME_S)
    token_hmac = services.keys.mac("session", token.encode())
    session_id = new_id()
    await OrganizationRepository(work.scope).add_session(session_id, user_id, token_hmac, now, expires_at)
    return token, Credential(session_id, expires_at, None)
