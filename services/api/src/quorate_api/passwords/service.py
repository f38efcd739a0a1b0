"""Changing a password, and setting a new one by a link in a mail. Nobody learns which addresses have an account."""

import asyncio
import secrets
from datetime import UTC, datetime, timedelta

from quorate_api import limits
from quorate_api.database.work import Work
from quorate_api.errors import Code, Problem
from quorate_api.http.client import Client
from quorate_api.http.principal import Principal
from quorate_api.http.services import Services
from quorate_api.mail import outbox, texts
from quorate_api.passwords.schemas import Change, Reset, ResetRequest
from quorate_api.sessions import service as sessions
from quorate_api.users.repository import MailTokenRepository, UserRepository

PURPOSE = "reset_password"
ANSWER_S = 0.3  # for every request alike, so that its time tells nothing


async def request_reset(work: Work, services: Services, asked: ResetRequest, client: Client) -> None:
    """Only the holder of a verified address gets a link: a stranger may have signed up with it, too."""
    outbox.require_mail(services)
    await services.rates.mail_request(client.address)
    until = asyncio.get_running_loop().time() + ANSWER_S
    user = await UserRepository(work.connection).verified(asked.email)
    if user is not None and await services.rates.may_mail(asked.email):
        token, now = secrets.token_urlsafe(32), datetime.now(UTC)
        await MailTokenRepository(work.connection).replace(
            user.id, PURPOSE, _hmac(services, token), now, now + timedelta(seconds=limits.RESET_LIFE_S)
        )
        await outbox.post(work, services, texts.reset_password(user.email, services.settings.origin, token))
    await work.checkpoint()
    await asyncio.sleep(until - asyncio.get_running_loop().time())


async def reset(work: Work, services: Services, asked: Reset, client: Client) -> None:
    """The link proves the address. Every session of the person ends; the second factor stays."""
    await services.rates.link(client.address)
    user_id = await MailTokenRepository(work.connection).use(
        services.keys.macs(PURPOSE, asked.token.encode()), PURPOSE, datetime.now(UTC)
    )
    if user_id is None:
        raise Problem(Code.LINK_INVALID)
    password_hash = await services.passwords.hash(asked.password)
    users = UserRepository(work.connection)
    await users.set_password(user_id, password_hash)
    await sessions.end_all(work, user_id)
    user = await users.by_id(user_id)
    await outbox.post(work, services, texts.password_changed(user.email, services.settings.origin))


async def change(work: Work, services: Services, principal: Principal, asked: Change, client: Client) -> None:
    """Other sessions of the person end."""
    user_id = principal.require_person()
    users = UserRepository(work.connection)
    user = await users.by_id(user_id)
    await sessions.check_password(work, services, user, asked.password, client)
    async with work.outside():
        password_hash = await services.passwords.hash(asked.new_password)
    users = UserRepository(work.connection)
    await users.set_password(user_id, password_hash)
    await MailTokenRepository(work.connection).end(user_id, PURPOSE)
    await sessions.end_all(work, user_id, kept=principal.credential.id)
    await outbox.post(work, services, texts.password_changed(user.email, services.settings.origin))


def _hmac(services: Services, token: str) -> bytes:
    return services.keys.mac(PURPOSE, token.encode())
