"""Authenticators (TOTP) and recovery codes. The secret of an authenticator is sealed; of codes there is an HMAC."""

import secrets
import string
from datetime import UTC, datetime
from uuid import UUID

from quorate_api import limits
from quorate_api.database.work import Work
from quorate_api.errors import Code, Problem
from quorate_api.factors import totp
from quorate_api.factors.repository import FactorRepository
from quorate_api.factors.schemas import NewTotp, RecoveryCodes, SecondFactor
from quorate_api.http.principal import Principal
from quorate_api.http.services import Services
from quorate_api.mail import outbox, texts
from quorate_api.users.repository import UserRepository

PURPOSE = "totp"
DIGITS = 6
CODE_LENGTH = 10  # 48 bits
CODE_ALPHABET = "".join(sorted(set(string.ascii_uppercase + string.digits) - set("0O1IL")))


async def has_totp(work: Work, user_id: UUID) -> bool:
    known = await FactorRepository(work.connection).totp(user_id)
    return known is not None and known.confirmed_at is not None


async def is_right(work: Work, services: Services, user_id: UUID, code: str) -> bool:
    """Whether the code is a right one. It is used up then."""
    repository = FactorRepository(work.connection)
    if len(code) != DIGITS or not code.isdigit():
        return await repository.use_code(user_id, services.keys.macs("recovery code", user_id.bytes, code.encode()))
    known = await repository.totp(user_id)
    if known is None or known.confirmed_at is None:
        return False
    secret = services.keys.open(PURPOSE, user_id.bytes, known.sealed).decode()
    step = totp.step_of(secret, code, datetime.now(UTC).timestamp(), known.last_step)
    return step is not None and await repository.use_step(user_id, step)


async def state(work: Work, principal: Principal) -> SecondFactor:
    user_id = principal.require_person()
    left = await FactorRepository(work.connection).codes_left(user_id)
    return SecondFactor(totp=await has_totp(work, user_id), recovery_codes_left=left)


async def begin(work: Work, services: Services, principal: Principal) -> NewTotp:
    user_id = principal.require_person()
    principal.require_confirmed()
    if await has_totp(work, user_id):
        raise Problem(Code.NAME_TAKEN, "The account has an authenticator. Remove it first.")
    secret = totp.new_secret()
    sealed = services.keys.seal(PURPOSE, user_id.bytes, secret.encode())
    await FactorRepository(work.connection).begin_totp(user_id, sealed, datetime.now(UTC))
    user = await UserRepository(work.connection).by_id(user_id)
    return NewTotp(secret=secret, uri=totp.uri(secret, user.email))


async def confirm(work: Work, services: Services, principal: Principal, code: str) -> RecoveryCodes:
    """The authenticator counts once it has shown a right code."""
    user_id = principal.require_person()
    principal.require_confirmed()
    repository, now = FactorRepository(work.connection), datetime.now(UTC)
    known = await repository.totp(user_id)
    if known is None or known.confirmed_at is not None:
        raise Problem(Code.NOT_FOUND, "No authenticator waits to be confirmed. Begin with `POST /v1/me/totp`.")
    secret = services.keys.open(PURPOSE, user_id.bytes, known.sealed).decode()
    step = totp.step_of(secret, code, now.timestamp(), known.last_step)
    if step is None or not await repository.use_step(user_id, step, now):
        raise Problem(Code.SECOND_FACTOR_WRONG)
    await tell(work, services, user_id, "An authenticator was added.")
    return await _new_codes(work, services, user_id)


async def renew_codes(work: Work, services: Services, principal: Principal) -> RecoveryCodes:
    user_id = principal.require_person()
    principal.require_confirmed()
    if not await has_totp(work, user_id):
        raise Problem(Code.NOT_FOUND, "Recovery codes come with an authenticator, and the account has none.")
    await tell(work, services, user_id, "The recovery codes were replaced.")
    return await _new_codes(work, services, user_id)


async def remove(work: Work, services: Services, principal: Principal) -> None:
    user_id = principal.require_person()
    principal.require_confirmed()
    await FactorRepository(work.connection).remove(user_id)
    await tell(work, services, user_id, "The authenticator was removed.")


async def _new_codes(work: Work, services: Services, user_id: UUID) -> RecoveryCodes:
    codes = ["".join(secrets.choice(CODE_ALPHABET) for _ in range(CODE_LENGTH)) for _ in range(limits.RECOVERY_CODES)]
    await FactorRepository(work.connection).replace_codes(user_id, [_hmac(services, user_id, code) for code in codes])
    return RecoveryCodes(codes=[f"{code[: CODE_LENGTH // 2]}-{code[CODE_LENGTH // 2 :]}" for code in codes])


async def tell(work: Work, services: Services, user_id: UUID, what: str) -> None:
    """Mail the person that their ways to log in have changed."""
    user = await UserRepository(work.connection).by_id(user_id)
    await outbox.post(work, services, texts.second_factor_changed(user.email, what, services.settings.origin))


def _hmac(services: Services, user_id: UUID, code: str) -> bytes:
    return services.keys.mac("recovery code", user_id.bytes, code.encode())
