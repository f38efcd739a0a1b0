"""Verification of e-mail addresses, by a link that only the account which signed up can use.

A stranger may sign up with somebody's address. If the link alone were enough, its holder would verify the stranger's
account.
"""

import secrets
from datetime import UTC, datetime, timedelta
from uuid import UUID

from quorate_api import limits
from quorate_api.database.work import Work
from quorate_api.errors import Code, Problem
from quorate_api.http.principal import Principal
from quorate_api.http.services import Services
from quorate_api.mail import outbox, texts
from quorate_api.users.repository import MailTokenRepository, UserRepository

PURPOSE = "verify_email"


async def send_link(work: Work, services: Services, user_id: UUID, email: str) -> None:
    """For a new account. The holder of the address hears of one that can never have it."""
    origin = services.settings.origin
    if await UserRepository(work.connection).verified(email) is not None:
        await outbox.post(work, services, texts.address_in_use(email, origin))
        return
    token, now = secrets.token_urlsafe(32), datetime.now(UTC)
    await MailTokenRepository(work.connection).replace(
        user_id, PURPOSE, _hmac(services, token), now, now + timedelta(seconds=limits.VERIFICATION_LIFE_S)
    )
    await outbox.post(work, services, texts.verify_email(email, origin, token))


async def send_again(work: Work, services: Services, principal: Principal) -> None:
    user_id = principal.require_person()
    outbox.require_mail(services)
    user = await UserRepository(work.connection).by_id(user_id)
    if user.email_verified_at is None:
        await services.rates.mail_to(user.email)
        await send_link(work, services, user_id, user.email)


async def verify(work: Work, services: Services, principal: Principal, token: str) -> None:
    user_id, now = principal.require_person(), datetime.now(UTC)
    users = UserRepository(work.connection)
    user = await users.by_id(user_id)
    if user.email_verified_at is not None:
        return  # the link was opened twice
    if (
        await MailTokenRepository(work.connection).use(services.keys.macs(PURPOSE, token.encode()), PURPOSE, now)
        != user_id
    ):
        raise Problem(
            Code.LINK_INVALID,
            "The link is too old, was replaced by a newer one, or is of another account. Log in with the account that "
            "signed up, or have another link sent.",
        )
    if await users.verified(user.email) is not None:
        raise Problem(Code.LINK_INVALID, "Another account has verified this address meanwhile. Log in with that one.")
    await users.verify_email(user_id, now)


def _hmac(services: Services, token: str) -> bytes:
    return services.keys.mac(PURPOSE, token.encode())
