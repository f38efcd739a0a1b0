"""(j) Mail that waits: it is sent, tried again with growing pauses, and given up after a day."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.mail import outbox
from quorate_api.mail.repository import MailRepository
from quorate_api.mail.senders import MailRefused, Sender
from quorate_api.security.keys import Keys

log = structlog.get_logger(__name__)

TAKEN = timedelta(seconds=6 * limits.MAIL_TIMEOUT_S)  # longer than an attempt


@dataclass(slots=True)
class Postman:
    """Several workers may run it at once: each takes other mail. A crash may send one twice, and loses none."""

    engine: AsyncEngine
    keys: Keys
    sender: Sender

    async def run(self) -> int:
        """One pass. Returns the number of mails that were sent."""
        sent = 0
        while some := await self._take():
            sent += sum(await asyncio.gather(*(self._deliver(row) for row in some)))
        return sent

    async def _take(self) -> list[Row[Any]]:
        now = datetime.now(UTC)
        async with self.engine.begin() as connection:
            return await MailRepository(connection).take(now, now + TAKEN, limits.MAILS_AT_ONCE)

    async def _deliver(self, row: Row[Any]) -> bool:
        now = datetime.now(UTC)
        try:
            await self.sender.send(outbox.opened(self.keys, row.id.bytes, row.sealed))
        except (MailRefused, OSError) as error:
            is_final = isinstance(error, MailRefused) and error.is_final
            is_over = is_final or now - row.created_at > timedelta(seconds=limits.MAIL_LIFE_S)
            why = str(error) or type(error).__name__
            log.warning("mail not sent", mail=str(row.id), attempts=row.attempts, given_up=is_over, why=why)
            pause_s = min(limits.MAIL_RETRY_S * 2 ** (row.attempts - 1), limits.MAIL_RETRY_S_MAX)
            async with self.engine.begin() as connection:
                repository = MailRepository(connection)
                if is_over:
                    await repository.forget([row.id])
                else:
                    await repository.postpone(row.id, now + timedelta(seconds=pause_s))
            return False
        async with self.engine.begin() as connection:
            await MailRepository(connection).forget([row.id])
        return True
