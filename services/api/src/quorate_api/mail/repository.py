"""Mail that waits to be sent. It belongs to no organization, and its content is sealed."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, delete, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from quorate_api.database.tables import mails


class MailRepository:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def add(self, mail_id: UUID, sealed: bytes, now: datetime) -> None:
        values = {"id": mail_id, "sealed": sealed, "created_at": now, "attempts": 0, "next_at": now}
        await self._connection.execute(insert(mails).values(**values))

    async def take(self, now: datetime, until: datetime, limit: int) -> list[Row[Any]]:
        """Mail that is due. Nobody else takes it before `until`, by when it is sent or has failed."""
        due = select(mails.c.id).where(mails.c.next_at <= now).order_by(mails.c.next_at).limit(limit)
        taken = (
            update(mails)
            .where(mails.c.id.in_(due.with_for_update(skip_locked=True)))
            .values(next_at=until, attempts=mails.c.attempts + 1)
            .returning(mails)
        )
        return list((await self._connection.execute(taken)).all())

    async def postpone(self, mail_id: UUID, until: datetime) -> None:
        await self._connection.execute(update(mails).where(mails.c.id == mail_id).values(next_at=until))

    async def forget(self, mail_ids: Iterable[UUID]) -> None:
        await self._connection.execute(delete(mails).where(mails.c.id.in_(list(mail_ids))))
