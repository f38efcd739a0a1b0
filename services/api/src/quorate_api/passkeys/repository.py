"""Passkeys of people, and answered challenges."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, delete, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from quorate_api.database.tables import answered_challenges, passkeys


class PasskeyRepository:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def of(self, user_id: UUID) -> list[Row[Any]]:
        """Oldest first."""
        statement = select(passkeys).where(passkeys.c.user_id == user_id).order_by(passkeys.c.created_at)
        return list((await self._connection.execute(statement)).all())

    async def by_credential(self, credential_id: bytes) -> Row[Any] | None:
        """Nobody else answers with it until the transaction ends."""
        statement = select(passkeys).where(passkeys.c.credential_id == credential_id).with_for_update()
        return (await self._connection.execute(statement)).one_or_none()

    async def add(self, **values: Any) -> bool:
        """False: the passkey is there already."""
        statement = insert(passkeys).values(**values).on_conflict_do_nothing().returning(passkeys.c.id)
        return (await self._connection.execute(statement)).first() is not None

    async def note_used(self, passkey_id: UUID, sign_count: int, now: datetime) -> None:
        statement = update(passkeys).where(passkeys.c.id == passkey_id)
        await self._connection.execute(statement.values(sign_count=sign_count, last_used_at=now))

    async def remove(self, user_id: UUID, passkey_id: UUID) -> bool:
        statement = delete(passkeys).where(passkeys.c.user_id == user_id, passkeys.c.id == passkey_id)
        return (await self._connection.execute(statement.returning(passkeys.c.id))).first() is not None

    async def note_answered(self, challenge: bytes, expires_at: datetime, now: datetime) -> bool:
        """False: it was answered before."""
        await self._connection.execute(delete(answered_challenges).where(answered_challenges.c.expires_at <= now))
        statement = insert(answered_challenges).values(challenge=challenge, expires_at=expires_at)
        noted = statement.on_conflict_do_nothing().returning(answered_challenges.c.expires_at)
        return (await self._connection.execute(noted)).first() is not None
