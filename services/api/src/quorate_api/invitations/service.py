"""Inviting people by mail. The link proves the address, so that whoever accepts it has a verified one."""

import secrets
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from quorate_api import limits
from quorate_api.access.permissions import Permission
from quorate_api.accounts import service as accounts
from quorate_api.database.ids import new_id
from quorate_api.database.work import Work
from quorate_api.errors import Code, Problem, not_found
from quorate_api.http.client import Client
from quorate_api.http.principal import Principal
from quorate_api.http.services import Services
from quorate_api.identities import service as identities
from quorate_api.identities.attempt import Attempt
from quorate_api.invitations.repository import InvitationRepository, by_link
from quorate_api.invitations.schemas import Acceptance, Invitation, Invitations, Invited, NewInvitation
from quorate_api.mail import outbox, texts
from quorate_api.members.service import OWNER
from quorate_api.organizations.repository import OrganizationRepository
from quorate_api.passkeys import service as passkeys
from quorate_api.passkeys.schemas import FirstPasskeyOptions
from quorate_api.quotas import service as quotas
from quorate_api.sessions import service as sessions
from quorate_api.users.repository import UserRepository


async def create(work: Work, services: Services, principal: Principal, asked: NewInvitation) -> Invitation:
    """In the place of an earlier invitation of the same address, whose link does not work any more."""
    user_id = principal.require_person()
    principal.require(Permission.OWN if asked.role == OWNER else Permission.ADMINISTER)
    principal.require_confirmed()
    outbox.require_mail(services)
    users, organizations = UserRepository(work.connection), OrganizationRepository(work.scope)
    inviter = await users.by_id(user_id)
    if inviter.email_verified_at is None:
        raise Problem(Code.PERMISSION_DENIED, "Verify your own address first: invitations are sent in your name.")
    await quotas.lock(work)
    now = datetime.now(UTC)
    invitations = InvitationRepository(work.scope)
    if any(row.email == asked.email for row in await organizations.members()):
        raise Problem(Code.MEMBER_ALREADY)
    waiting = [row for row in await invitations.all_of(now) if row.email != asked.email]
    if len(waiting) >= limits.INVITATIONS_MAX or await organizations.count() >= limits.MEMBERS_MAX:
        raise Problem(
            Code.QUOTA_EXCEEDED,
            f"An organization has at most {limits.MEMBERS_MAX} members, and {limits.INVITATIONS_MAX} open invitations.",
        )
    await services.rates.invitation(str(principal.organization_id))
    await services.rates.mail_to(asked.email)
    token = secrets.token_urlsafe(32)
    shown = Invitation(
        id=new_id(),
        email=asked.email,
        role=asked.role,
        created_at=now,
        expires_at=now + timedelta(seconds=limits.INVITATION_LIFE_S),
    )
    await invitations.replace(**shown.model_dump(), token_hmac=_hmac(services, token), invited_by=user_id)
    name, origin = (await organizations.get()).name, services.settings.origin
    mail = texts.invitation(asked.email, name, inviter.email, asked.role, origin, token)
    await outbox.post(work, services, mail)
    return shown


async def all_of(work: Work, principal: Principal) -> Invitations:
    principal.require(Permission.TEAM)
    rows = await InvitationRepository(work.scope).all_of(datetime.now(UTC))
    return Invitations(items=[_invitation(row) for row in rows])


async def withdraw(work: Work, principal: Principal, invitation_id: UUID) -> None:
    principal.require_person()
    principal.require(Permission.ADMINISTER)
    found = await InvitationRepository(work.scope).get(invitation_id)
    if found is not None and found.role == OWNER:
        principal.require(Permission.OWN)
    if not await InvitationRepository(work.scope).delete(invitation_id):
        raise not_found("invitation")


async def look(work: Work, services: Services, token: str, client: Client) -> Invited:
    await services.rates.link(client.address)
    found = await _open(work, services, token)
    account = await UserRepository(work.connection).verified(found.email)
    return Invited(
        organization_name=found.organization_name, email=found.email, role=found.role, has_account=account is not None
    )


async def begin_passkey(work: Work, services: Services, token: str, client: Client) -> FirstPasskeyOptions:
    await services.rates.link(client.address)
    found = await _open(work, services, token)
    return passkeys.begin_first(services, found.email)


async def accept_as_new(
    work: Work, services: Services, asked: Acceptance, attempt: Attempt | None, client: Client
) -> accounts.Opened:
    """Make an account, and join with it."""
    await services.rates.link(client.address)
    await _open(work, services, asked.token)
    if asked.identity is not None:
        attempt = await identities.show(work, services, attempt, asked.identity, None, client)
    # With a passkey or an identity nobody knows the password, until the person sets one by mail.
    password = asked.password or secrets.token_urlsafe(32)
    async with work.outside():
        password_hash = await services.passwords.hash(password)
    found = await _open(work, services, asked.token)
    users, now = UserRepository(work.connection), datetime.now(UTC)
    user_id = asked.passkey.user_id if asked.passkey is not None else new_id()
    if not await users.insert(user_id, found.email, password_hash, now, verified=True):
        raise Problem(Code.EMAIL_TAKEN, "This address has an account. Log in with it, then open the link again.")
    if asked.passkey is not None:
        await passkeys.add_first(work, services, asked.passkey)
    if asked.identity is not None:
        assert attempt is not None, "it was shown"
        await identities.connect(work, services, attempt, user_id)
    return await _join(work, services, found, await users.by_id(user_id), client)


async def accept(work: Work, services: Services, principal: Principal, token: str, client: Client) -> accounts.Opened:
    """Join with the account that is logged in. Its address is the invited one."""
    user_id = principal.require_person()
    found = await _open(work, services, token)
    users = UserRepository(work.connection)
    user = await users.by_id(user_id)
    if user.email != found.email:
        raise Problem(Code.PERMISSION_DENIED, f"The invitation is for {found.email}. Log out, and open the link again.")
    holder = await users.verified(user.email)
    if holder is None:
        await users.verify_email(user_id, datetime.now(UTC))
    elif holder.id != user_id:
        raise Problem(Code.LINK_INVALID, "Another account has verified this address. Log in with that one.")
    await sessions.end(work, principal)
    await work.leave()
    return await _join(work, services, found, user, client)


async def _join(work: Work, services: Services, found: Row[Any], user: Row[Any], client: Client) -> accounts.Opened:
    scope = await work.enter(found.organization_id)
    await quotas.lock(work)
    if not await InvitationRepository(scope).delete(found.id):
        raise Problem(Code.LINK_INVALID)
    organizations = OrganizationRepository(scope)
    await organizations.add_member(user.id, found.role, datetime.now(UTC))
    role = await organizations.role_of(user.id)
    assert role is not None, "it was added, or was a member"
    return await accounts.open_in(work, services, user, found.organization_id, role, client)


async def _open(work: Work, services: Services, token: str) -> Row[Any]:
    found = None
    for token_hmac in services.keys.macs("invitation", token.encode()):
        found = found or await by_link(work.connection, token_hmac)
    if found is None or found.expires_at <= datetime.now(UTC):
        raise Problem(Code.LINK_INVALID)
    return found


def _invitation(row: Row[Any]) -> Invitation:
    return Invitation(id=row.id, email=row.email, role=row.role, created_at=row.created_at, expires_at=row.expires_at)


def _hmac(services: Services, token: str) -> bytes:
    return services.keys.mac("invitation", token.encode())
