"""Signing up, logging in and out, and which organization a session is of."""

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from quorate_api import limits
from quorate_api.access.permissions import Allowed
from quorate_api.accounts.schemas import Login, Me, Membership, Organization, Outcome, SignedUp, SignUp, User
from quorate_api.database.ids import new_id
from quorate_api.database.work import Work
from quorate_api.emails import service as emails
from quorate_api.errors import Code, FieldError, Problem, not_found
from quorate_api.factors import service as factors
from quorate_api.http.client import Client
from quorate_api.http.principal import Credential, Principal, csrf_token
from quorate_api.http.services import Services
from quorate_api.identities import service as identities
from quorate_api.identities.attempt import Attempt
from quorate_api.organizations.repository import OrganizationRepository
from quorate_api.passkeys import service as passkeys
from quorate_api.projects.repository import ProjectRepository
from quorate_api.projects.schemas import Project
from quorate_api.sessions import service as sessions
from quorate_api.users.repository import UserRepository

FIRST_PROJECT = "default"
# An address that nobody has verified may be that of two accounts. As many hashes are computed for every log-in.
CANDIDATES = 2


@dataclass(frozen=True, slots=True)
class Opened:
    """A new session: the body of the answer, the secret for the cookie, and whose it is."""

    body: SignedUp | Me
    session_token: str
    user_id: UUID
    email: str
    email_verified: bool
    credential: Credential


@dataclass(frozen=True, slots=True)
class NewPerson:
    id: UUID
    email: str
    password: str
    verified: bool  # the address


async def sign_up(work: Work, services: Services, asked: SignUp, client: Client) -> Opened:
    """The answer is the same for an address that has an account; its holder gets mail about that. Only a service
    that sends no mail says so."""
    verified = not services.settings.sends_mail
    person = NewPerson(new_id(), asked.email, asked.password, verified)
    return await _sign_up(work, services, person, asked.organization, None, client)


async def sign_up_with_provider(
    work: Work, services: Services, attempt: Attempt | None, organization: str, client: Client
) -> Opened:
    """With the identity that was shown. Its address counts as verified where the provider says so."""
    if attempt is None or attempt.identity is None or attempt.person is not None:
        raise Problem(Code.IDENTITY_REFUSED, "This browser has shown no identity, or more than ten minutes ago.")
    shown = attempt.identity
    verified = shown.email_verified or not services.settings.sends_mail
    # Nobody knows the password, until the person sets one by mail.
    person = NewPerson(new_id(), shown.email, secrets.token_urlsafe(32), verified)
    return await _sign_up(work, services, person, organization, attempt, client)


async def _sign_up(
    work: Work, services: Services, person: NewPerson, organization: str, attempt: Attempt | None, client: Client
) -> Opened:
    await services.rates.signup(client.address)
    async with work.outside():  # argon2 takes half a second and needs no connection
        password_hash = await services.passwords.hash(person.password)
    now = datetime.now(UTC)
    user_id, organization_id, project_id = person.id, new_id(), new_id()
    verified = person.verified
    if not await UserRepository(work.connection).insert(user_id, person.email, password_hash, now, verified=verified):
        errors = [FieldError(field="email", message="There is an account with this e-mail.")]
        raise Problem(Code.EMAIL_TAKEN, errors=errors)
    if attempt is not None:
        await identities.connect(work, services, attempt, user_id)
    scope = await work.enter(organization_id)
    organizations = OrganizationRepository(scope)
    await organizations.insert(organization, now)
    await organizations.add_member(user_id, "owner", now)
    await ProjectRepository(scope).insert(project_id, FIRST_PROJECT, now)
    token, credential = await sessions.begin(work, services, user_id, client)
    if not verified:
        await emails.send_link(work, services, user_id, person.email)
    body = SignedUp(
        user=User(id=user_id, email=person.email, created_at=now, email_verified=verified),
        organization=Organization(id=organization_id, name=organization, created_at=now, standing="active"),
        project=Project(id=project_id, name=FIRST_PROJECT, created_at=now),
        csrf_token=csrf_token(services, token),
    )
    return Opened(body, token, user_id, person.email, verified, credential)


async def log_in(work: Work, services: Services, asked: Login, client: Client) -> Opened:
    known = await UserRepository(work.connection).verified(asked.email)
    device = client.device(services, known.id if known is not None else None)
    await services.rates.before_login(asked.email, client.address, device)
    user = await _who(work, services, asked)
    if user is None:
        await services.rates.failed_login(asked.email, client.address, device)
        raise Problem(Code.CREDENTIALS_INVALID, "The e-mail or the password is wrong.")
    if await factors.has_totp(work, user.id):
        if asked.code is None:
            raise Problem(Code.SECOND_FACTOR_REQUIRED)
        await sessions.check_code(work, services, user, asked.code, client)
    return await _open(work, services, user, client)


async def log_in_with_passkey(work: Work, services: Services, credential: dict[str, Any], client: Client) -> Opened:
    """The authenticator has verified the person, so no second factor is asked for."""
    user_id = await passkeys.whose(work, services, credential, client)
    return await _open(work, services, await UserRepository(work.connection).by_id(user_id), client)


async def log_in_with_provider(
    work: Work, services: Services, attempt: Attempt, second_factor: str | None, client: Client
) -> tuple[Outcome, Opened | None]:
    """With the identity that was shown. A person with a second factor wants it at each log-in, so at this one, too."""
    assert attempt.identity is not None, "shown"
    user_id = await identities.whose(work, services, attempt)
    if user_id is None:
        known = await UserRepository(work.connection).verified(attempt.identity.email)
        return "account_needed" if known is None else "account_exists", None
    user = await UserRepository(work.connection).by_id(user_id)
    if await factors.has_totp(work, user_id):
        if second_factor is None:
            return "second_factor_required", None
        await sessions.check_code(work, services, user, second_factor, client)
    return "logged_in", await _open(work, services, user, client)


async def _open(work: Work, services: Services, user: Row[Any], client: Client) -> Opened:
    """A session in the organization of which the person has been a member for longest."""
    memberships = await UserRepository(work.connection).memberships(user.id)
    if not memberships:
        raise Problem(Code.PERMISSION_DENIED, "This account belongs to no organization any more.")
    return await open_in(work, services, user, memberships[0].organization_id, memberships[0].role, client)


async def _who(work: Work, services: Services, asked: Login) -> Row[Any] | None:
    """The account whose password it is."""
    count = CANDIDATES if services.settings.sends_mail else 1
    candidates = await UserRepository(work.connection).who_may_log_in(asked.email, count)
    found = None
    async with work.outside():
        for user in [*candidates, *[None] * (count - len(candidates))]:
            right = await services.passwords.verify(asked.password, user.password_hash if user else None)
            found = user if right and found is None else found
    return found


async def open_in(
    work: Work, services: Services, user: Row[Any], organization_id: UUID, role: str, client: Client
) -> Opened:
    """Begin a session of the person in the organization."""
    await work.enter(organization_id)
    token, credential = await sessions.begin(work, services, user.id, client)
    principal = Principal(
        user.id,
        "user",
        organization_id,
        Allowed.of_role(role),
        credential,
        (await OrganizationRepository(work.scope).get()).standing,
        role=role,
        user_id=user.id,
        csrf_token=csrf_token(services, token),
        confirmed_at=datetime.now(UTC),
    )
    verified = user.email_verified_at is not None
    return Opened(await me(work, principal), token, user.id, user.email, verified, credential)


async def switch(work: Work, services: Services, principal: Principal, organization_id: UUID, client: Client) -> Opened:
    """A session of another organization of the person, in the place of the present one."""
    user_id = principal.require_person()
    await services.rates.switch(str(user_id))
    memberships = await UserRepository(work.connection).memberships(user_id)
    found = [each for each in memberships if each.organization_id == organization_id]
    if not found:
        raise not_found("organization")
    user = await UserRepository(work.connection).by_id(user_id)
    await sessions.end(work, principal)
    await work.leave()
    return await open_in(work, services, user, organization_id, found[0].role, client)


async def me(work: Work, principal: Principal) -> Me:
    organization = await OrganizationRepository(work.scope).get()
    users = UserRepository(work.connection)
    user = await users.by_id(principal.user_id) if principal.user_id else None
    memberships = await users.memberships(principal.user_id) if principal.user_id else []
    projects = await ProjectRepository(work.scope).page(limits.PAGE_LIMIT_MAX, None, principal.project_id)
    return Me(
        user=_user(user) if user else None,
        organization=Organization(
            id=organization.organization_id,
            name=organization.name,
            created_at=organization.created_at,
            standing=organization.standing,
        ),
        role=principal.role,
        permissions=principal.allowed.names(),
        memberships=[
            Membership(organization_id=row.organization_id, organization_name=row.organization_name, role=row.role)
            for row in memberships
        ],
        projects=[Project(id=row.id, name=row.name, created_at=row.created_at) for row in projects],
        csrf_token=principal.csrf_token,
        viewed_by=principal.operator,
    )


def _user(row: Row[Any]) -> User:
    verified = row.email_verified_at is not None
    return User(id=row.id, email=row.email, created_at=row.created_at, email_verified=verified)
