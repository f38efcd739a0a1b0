"""Identities at providers: connecting them, and knowing a person by one.

A provider's word for an address never opens an account that has it: the account's holder connects the identity, logged
in. Otherwise a provider, or whoever controls an address there, could take over accounts.
"""

from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar
from uuid import UUID

import structlog

from quorate_api import limits
from quorate_api.database.ids import new_id
from quorate_api.database.work import Work
from quorate_api.errors import Code, Problem, not_found
from quorate_api.factors import service as factors
from quorate_api.http.client import Client
from quorate_api.http.principal import Principal
from quorate_api.http.services import Services
from quorate_api.identities.attempt import Attempt
from quorate_api.identities.repository import IdentityRepository
from quorate_api.identities.schemas import Identities, Identity, IdentityProvider, IdentityProviders, ProviderAnswer
from quorate_api.openid.provider import AnswerRefused, Provider, ProviderUnavailable

RETURN = "/login/return"

log = structlog.get_logger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Begun:
    url: str
    attempt: Attempt


def providers(services: Services) -> IdentityProviders:
    return IdentityProviders(
        items=[IdentityProvider(id=each.id, name=each.name) for each in services.providers.values()]
    )


async def begin(work: Work, services: Services, provider_id: str, person: UUID | None) -> Begun:
    """`person`: who is logged in, and has the provider ask anew who it is."""
    provider = _provider(services, provider_id)
    attempt = Attempt.begin(provider_id, person)
    async with work.outside():
        url = await _answered(provider.url(attempt.asked, _redirect_uri(services), anew=person is not None))
    return Begun(url, attempt)


async def show(
    work: Work, services: Services, attempt: Attempt | None, answer: ProviderAnswer, person: UUID | None, client: Client
) -> Attempt:
    """The attempt with the identity that the provider tells. Raises `identity_refused`."""
    if attempt is None or attempt.person != person or attempt.asked.state != answer.state:
        raise Problem(Code.IDENTITY_REFUSED, "This browser did not begin it, or more than ten minutes ago.")
    if attempt.identity is not None:
        return attempt
    await services.rates.identity(client.address)
    provider = _provider(services, attempt.provider)
    async with work.outside():
        identity = await _answered(provider.identity(attempt.asked, _redirect_uri(services), answer.code))
    return attempt.shown(identity)


async def whose(work: Work, services: Services, attempt: Attempt) -> UUID | None:
    """The person with the identity that was shown. None: nobody has it."""
    assert attempt.identity is not None, "shown"
    issuer = _provider(services, attempt.provider).issuer
    repository = IdentityRepository(work.connection)
    known = await repository.by_subject(issuer, attempt.identity.subject)
    if known is None:
        return None
    await repository.note_used(known.id, datetime.now(UTC))
    return UUID(str(known.user_id))


async def connect(work: Work, services: Services, attempt: Attempt, user_id: UUID) -> Identity:
    """Raises `name_taken` if it is somebody's."""
    assert attempt.identity is not None, "shown"
    provider, now = _provider(services, attempt.provider), datetime.now(UTC)
    repository = IdentityRepository(work.connection)
    if len(await repository.of(user_id)) >= limits.IDENTITIES_MAX:
        raise Problem(Code.QUOTA_EXCEEDED, f"An account has at most {limits.IDENTITIES_MAX} identities. Remove one.")
    identity = Identity(
        id=new_id(),
        provider=provider.id,
        provider_name=provider.name,
        email=attempt.identity.email,
        created_at=now,
        last_used_at=None,
    )
    added = await repository.add(
        id=identity.id,
        user_id=user_id,
        provider=provider.id,
        issuer=provider.issuer,
        subject=attempt.identity.subject,
        email=identity.email,
        created_at=now,
    )
    if not added:
        raise Problem(Code.NAME_TAKEN, f"This identity at {provider.name} is connected to an account already.")
    return identity


async def add(work: Work, services: Services, principal: Principal, attempt: Attempt) -> Identity:
    user_id = principal.require_person()
    principal.require_confirmed()
    identity = await connect(work, services, attempt, user_id)
    await factors.tell(work, services, user_id, f"An identity at {identity.provider_name} was connected.")
    return identity


async def confirm(work: Work, services: Services, principal: Principal, attempt: Attempt) -> None:
    """Raises `credentials_invalid` unless the person has shown its own identity to the provider just now."""
    if await whose(work, services, attempt) != principal.require_person():
        raise Problem(Code.CREDENTIALS_INVALID, "It is the identity of another account, or of none.")
    assert attempt.identity is not None, "shown"
    began_at, at = attempt.ends_at - limits.IDENTITY_ATTEMPT_S, attempt.identity.authenticated_at
    if at is None or at < began_at - limits.PROVIDER_CLOCK_S:
        raise Problem(Code.CREDENTIALS_INVALID, "The provider has not asked anew who you are. Use another way.")


async def all_of(work: Work, services: Services, principal: Principal) -> Identities:
    rows = await IdentityRepository(work.connection).of(principal.require_person())
    names = {each.id: each.name for each in services.providers.values()}
    return Identities(
        items=[
            Identity(
                id=row.id,
                provider=row.provider,
                provider_name=names.get(row.provider, row.issuer),
                email=row.email,
                created_at=row.created_at,
                last_used_at=row.last_used_at,
            )
            for row in rows
        ]
    )


async def remove(work: Work, services: Services, principal: Principal, identity_id: UUID) -> None:
    user_id = principal.require_person()
    principal.require_confirmed()
    if not await IdentityRepository(work.connection).remove(user_id, identity_id):
        raise not_found("identity")
    await factors.tell(work, services, user_id, "An identity at a provider was removed.")


def _provider(services: Services, provider_id: str) -> Provider:
    provider = services.providers.get(provider_id)
    if provider is None:
        raise not_found("identity provider")
    return provider


def _redirect_uri(services: Services) -> str:
    return services.settings.origin + RETURN


async def _answered(call: Awaitable[T]) -> T:
    try:
        return await call
    except AnswerRefused as error:
        raise Problem(Code.IDENTITY_REFUSED, f"The provider's answer is not accepted: {error}.") from None
    except ProviderUnavailable as error:
        log.warning("an identity provider fails", error=str(error))
        raise Problem(Code.IDENTITY_PROVIDER_UNAVAILABLE, retry_after_s=5) from None
