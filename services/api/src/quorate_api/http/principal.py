"""The caller (a person with a session, or an API key) and its permissions."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from uuid import UUID

from fastapi import Depends, Request
from sqlalchemy import Row

from quorate_api import limits
from quorate_api.access.permissions import Allowed, KeyScope, Permission
from quorate_api.database.work import Work
from quorate_api.errors import Code, FieldError, Problem
from quorate_api.http.address import client_address
from quorate_api.http.cookies import name_of
from quorate_api.http.repository import PrincipalRepository
from quorate_api.http.services import Services, services_of
from quorate_api.http.standing import Standing
from quorate_api.security import api_keys, views

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
USE_RESOLUTION = timedelta(seconds=limits.SESSION_SEEN_RESOLUTION_S)  # uses are noted at most this often
CSRF_DIGITS = 32
SESSION_IDLE = timedelta(seconds=limits.SESSION_IDLE_S)


@dataclass(frozen=True, slots=True)
class Credential:
    """The session, or the secret of an API key, by which the caller is known."""

    id: UUID
    # Its end, if it is known beforehand. Tokens for servers end with it.
    ends_at: datetime | None
    # The expiry of the latest token for servers that was issued for it.
    tokens_until: datetime | None


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated caller. An API key with a `project_id` sees no other project."""

    id: UUID
    kind: str  # "user", "key", or "view": an operator who looks
    organization_id: UUID
    allowed: Allowed
    credential: Credential
    standing: Standing  # whether its organization is active
    role: str | None = None
    user_id: UUID | None = None
    project_id: UUID | None = None
    csrf_token: str | None = None
    operator: str | None = None  # of a view
    confirmed_at: datetime | None = None  # the last time at which a person has shown a password or code; None for a key

    def require(self, permission: Permission, group: str | None = None) -> None:
        """Raises `permission_denied`. `group`: the name of the one that it is about."""
        if not self.allowed.has(permission, group):
            raise self._lacks(permission)

    def require_somewhere(self, permission: Permission) -> None:
        """At least on some groups."""
        if not self.allowed.has_somewhere(permission):
            raise self._lacks(permission)

    def require_scopes(self, scopes: list[KeyScope]) -> None:
        """Raises `permission_denied` unless the caller may itself do all that a key with these scopes may."""
        beyond = [str(scope) for scope in scopes if not self.allowed.covers(scope)]
        if beyond:
            raise Problem(
                Code.PERMISSION_DENIED, f"Nobody makes a key that may do more than its maker: {', '.join(beyond)}."
            )

    def _lacks(self, permission: Permission) -> Problem:
        what = {"user": f"the role {self.role}", "key": "this API key", "view": "an operator's view"}[self.kind]
        return Problem(Code.PERMISSION_DENIED, f"This needs the permission `{permission}`, which {what} lacks.")

    def require_person(self) -> UUID:
        if self.user_id is None:
            raise Problem(Code.PERMISSION_DENIED, "API keys cannot do this; log in to the portal.")
        return self.user_id

    def require_whole_organization(self) -> None:
        if self.project_id is not None:
            raise Problem(Code.PERMISSION_DENIED, "The key of one project does not see the whole organization.")

    def require_confirmed(self) -> None:
        """Raises `confirmation_required` for a person who has shown no password or code for a while."""
        if self.confirmed_at is None:
            return
        if datetime.now(UTC) - self.confirmed_at > timedelta(seconds=limits.CONFIRMED_S):
            raise Problem(Code.CONFIRMATION_REQUIRED)

    def sees_project(self, project_id: UUID) -> bool:
        return self.project_id is None or self.project_id == project_id


def cookie_name(services: Services) -> str:
    return name_of(services, "session")


def csrf_token(services: Services, session_token: str) -> str:
    return services.keys.mac("csrf", session_token.encode()).hex()[:CSRF_DIGITS]


async def authenticate(request: Request, work: Work) -> Principal:
    """The caller, or a 401. The transaction sees the caller's organization from then on."""
    services = services_of(request)
    authorization = request.headers.get("authorization")
    if authorization is not None and authorization.startswith(f"Bearer {views.PREFIX}"):
        principal = await _by_view(services, work, authorization.removeprefix("Bearer "))
        if request.method not in SAFE_METHODS:
            raise Problem(Code.PERMISSION_DENIED, "An operator's view changes nothing.")
    elif authorization is not None:
        principal = await _by_key(
            services, work, authorization, client_address(request, services.settings.trusted_proxies)
        )
    else:
        token = request.cookies.get(cookie_name(services))
        if not token:
            raise Problem(Code.NOT_AUTHENTICATED)
        principal = await _by_session(services, work, token)
        if request.method not in SAFE_METHODS:
            given = request.headers.get("x-csrf-token", "")
            if not services.keys.verifies_hex(given, "csrf", token.encode(), digits=CSRF_DIGITS):
                errors = [FieldError(field="X-CSRF-Token", message="Missing or wrong.")]
                raise Problem(Code.CSRF_TOKEN_INVALID, errors=errors)
    return principal


async def _by_key(services: Services, work: Work, authorization: str, address: str) -> Principal:
    scheme, _, key = authorization.partition(" ")
    key = key.strip()
    if scheme.lower() != "bearer" or not api_keys.well_formed(key):
        raise Problem(
            Code.CREDENTIALS_INVALID,
            "The Authorization header holds no API key: it should be `Bearer qk_…`, 41 characters, copied whole.",
        )
    macs, now = services.keys.macs("api key", key.encode()), datetime.now(UTC)
    was_valid = services.known_keys.was_valid(macs[0])
    if was_valid is None:
        await services.rates.before_key(address)
    repository = PrincipalRepository(work.connection)
    found, known = (None, macs[0]) if was_valid is False else await _first(repository.find_api_key, macs)
    if found is None or found.revoked_at is not None:
        if was_valid is not False:
            services.known_keys.note(macs[0], False)
            await services.rates.invalid_key(address)
        raise Problem(Code.CREDENTIALS_INVALID, "This API key does not exist or was revoked.")
    services.known_keys.note(macs[0], True)
    if found.ends_at is not None and found.ends_at <= now:
        raise Problem(Code.CREDENTIALS_INVALID, "This API key has expired, or was replaced by a new secret.")
    if found.standing == "closed":
        raise Problem(Code.CREDENTIALS_INVALID, "The organization of this API key is closed.")
    scope = await work.enter(found.organization_id)
    if known != macs[0]:  # the former secret goes, and the key stays
        await repository.keep_api_key(scope, found.credential_id, macs[0], services.keys.id)
    if found.last_used_at is None or now - found.last_used_at > USE_RESOLUTION:
        await repository.touch_api_key(scope, found.id, now)
    return Principal(
        found.id,
        "key",
        found.organization_id,
        Allowed.of_scopes(found.scopes),
        Credential(found.credential_id, found.ends_at, found.tokens_until),
        found.standing,
        project_id=found.project_id,
    )


async def _by_view(services: Services, work: Work, token: str) -> Principal:
    view = views.read(services.keys, token, datetime.now(UTC))
    if view is None:
        raise Problem(Code.SESSION_EXPIRED, "The view is over. Begin another one from the console.")
    await work.enter(view.organization_id)
    standing = await PrincipalRepository(work.connection).standing(work.scope)
    return Principal(
        view.id,
        "view",
        view.organization_id,
        Allowed(frozenset({Permission.VIEW, Permission.TEAM, Permission.BILLING})),
        Credential(view.id, view.until, None),
        standing,
        operator=view.operator,
    )


async def _by_session(services: Services, work: Work, token: str) -> Principal:
    repository, now = PrincipalRepository(work.connection), datetime.now(UTC)
    macs = services.keys.macs("session", token.encode())
    found, known = await _first(repository.find_session, macs)
    if found is None or found.expires_at <= now or now - found.last_seen_at > SESSION_IDLE:
        raise Problem(Code.SESSION_EXPIRED)
    scope = await work.enter(found.organization_id)
    if known != macs[0]:
        await repository.keep_session(scope, found.id, macs[0])
    if now - found.last_seen_at > USE_RESOLUTION:
        await repository.touch_session(scope, found.id, now)
    return Principal(
        found.user_id,
        "user",
        found.organization_id,
        Allowed.of_role(found.role),
        Credential(found.id, found.expires_at, found.tokens_until),
        found.standing,
        role=found.role,
        user_id=found.user_id,
        csrf_token=csrf_token(services, token),
        confirmed_at=found.authenticated_at,
    )


async def _first(
    find: Callable[[bytes], Awaitable[Row[Any] | None]], macs: Sequence[bytes]
) -> tuple[Row[Any] | None, bytes]:
    """The row that is known by one of them, and by which."""
    for mac in macs:
        if (found := await find(mac)) is not None:
            return found, mac
    return None, macs[0]


def current_principal(request: Request) -> Principal:
    principal = request.state.principal
    assert isinstance(principal, Principal), "the route is not a ScopedRoute"
    return principal


def current_work(request: Request) -> Work:
    work = request.state.work
    assert isinstance(work, Work)
    return work


Caller = Annotated[Principal, Depends(current_principal)]
Transaction = Annotated[Work, Depends(current_work)]
Environment = Annotated[Services, Depends(services_of)]
