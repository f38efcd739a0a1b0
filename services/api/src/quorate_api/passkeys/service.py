"""Passkeys: adding them, and knowing a person by one. A passkey is a password and a second factor in one."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from quorate_api import limits
from quorate_api.database.ids import new_id
from quorate_api.database.work import Work
from quorate_api.errors import Code, FieldError, Problem, not_found
from quorate_api.factors import service as factors
from quorate_api.http.client import Client
from quorate_api.http.principal import Principal
from quorate_api.http.services import Services
from quorate_api.passkeys import ceremony
from quorate_api.passkeys.ceremony import AnswerRefused, Challenge, Place
from quorate_api.passkeys.repository import PasskeyRepository
from quorate_api.passkeys.schemas import (
    CeremonyOptions,
    FirstPasskey,
    FirstPasskeyOptions,
    NewPasskey,
    Passkey,
    Passkeys,
)
from quorate_api.users.repository import UserRepository

SHOW = "show a passkey"


async def all_of(work: Work, principal: Principal) -> Passkeys:
    rows = await PasskeyRepository(work.connection).of(principal.require_person())
    return Passkeys(
        items=[
            Passkey(id=row.id, name=row.name, created_at=row.created_at, last_used_at=row.last_used_at) for row in rows
        ]
    )


async def begin(work: Work, services: Services, principal: Principal) -> CeremonyOptions:
    user_id = principal.require_person()
    principal.require_confirmed()
    known = [row.credential_id for row in await PasskeyRepository(work.connection).of(user_id)]
    if len(known) >= limits.PASSKEYS_MAX:
        raise Problem(Code.QUOTA_EXCEEDED, f"The account has {len(known)} passkeys, as many as it may. Remove one.")
    user = await UserRepository(work.connection).by_id(user_id)
    challenge = Challenge.make(services.keys, _adding(user_id), datetime.now(UTC))
    place = Place.of(services.settings.origin)
    return CeremonyOptions(public_key=ceremony.creation_options(place, challenge, user_id, user.email, known))


async def add(work: Work, services: Services, principal: Principal, asked: NewPasskey) -> Passkey:
    user_id = principal.require_person()
    principal.require_confirmed()
    passkey = await _add(work, services, user_id, asked)
    await factors.tell(work, services, user_id, f"The passkey “{passkey.name}” was added.")
    return passkey


def begin_first(services: Services, email: str) -> FirstPasskeyOptions:
    """For an account that is still to be made."""
    user_id = new_id()
    challenge = Challenge.make(services.keys, _adding(user_id), datetime.now(UTC))
    options = ceremony.creation_options(Place.of(services.settings.origin), challenge, user_id, email, [])
    return FirstPasskeyOptions(user_id=user_id, public_key=options)


async def add_first(work: Work, services: Services, asked: FirstPasskey) -> None:
    """To the account that was just made with its `user_id`."""
    await _add(work, services, asked.user_id, asked)


async def _add(work: Work, services: Services, user_id: UUID, asked: NewPasskey) -> Passkey:
    repository, now = PasskeyRepository(work.connection), datetime.now(UTC)
    try:
        challenge = Challenge.answered(services.keys, _adding(user_id), asked.credential, now)
        made = ceremony.check_creation(Place.of(services.settings.origin), challenge, asked.credential)
        if not await repository.note_answered(challenge.value, challenge.expires_at, now):
            raise AnswerRefused("the challenge was answered before")
    except AnswerRefused as error:
        errors = [FieldError(field="body.credential", message=f"Not taken: {error}. Begin again.")]
        raise Problem(Code.VALIDATION_FAILED, errors=errors) from None
    passkey = Passkey(id=new_id(), name=asked.name, created_at=now, last_used_at=None)
    added = await repository.add(
        id=passkey.id,
        user_id=user_id,
        name=passkey.name,
        credential_id=made.credential_id,
        public_key=made.public_key,
        sign_count=made.sign_count,
        created_at=now,
    )
    if not added:
        raise Problem(Code.NAME_TAKEN, "This passkey was added before.")
    return passkey


async def remove(work: Work, services: Services, principal: Principal, passkey_id: UUID) -> None:
    user_id = principal.require_person()
    principal.require_confirmed()
    if not await PasskeyRepository(work.connection).remove(user_id, passkey_id):
        raise not_found("passkey")
    await factors.tell(work, services, user_id, "A passkey was removed.")


def ask(services: Services) -> CeremonyOptions:
    """A challenge for whoever has a passkey."""
    challenge = Challenge.make(services.keys, SHOW, datetime.now(UTC))
    return CeremonyOptions(public_key=ceremony.request_options(Place.of(services.settings.origin), challenge))


async def whose(work: Work, services: Services, credential: dict[str, Any], client: Client) -> UUID:
    """The person who has shown a passkey. Raises `credentials_invalid`, and `rate_limited` after too many failures."""
    repository, now = PasskeyRepository(work.connection), datetime.now(UTC)
    try:
        challenge = Challenge.answered(services.keys, SHOW, credential, now)
        known = await repository.by_credential(ceremony.id_of(credential))
        if known is None:
            raise AnswerRefused("no account has it")
        place = Place.of(services.settings.origin)
        sign_count = ceremony.check_request(place, challenge, credential, known.public_key, known.sign_count)
        if not await repository.note_answered(challenge.value, challenge.expires_at, now):
            raise AnswerRefused("the challenge was answered before")
    except AnswerRefused as error:
        await services.rates.wrong_passkey(client.address)
        raise Problem(Code.CREDENTIALS_INVALID, f"The passkey is not accepted: {error}.") from None
    await repository.note_used(known.id, sign_count, now)
    return UUID(str(known.user_id))


def _adding(user_id: UUID) -> str:
    return f"add a passkey to {user_id}"
