"""Identities of people at providers."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, delete, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from quorate_api.database.tables import identities


class IdentityRepository:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def of(self, user_id: UUID) -> list[Row[Any]]:
        """Oldest first."""
        statement = select(identities).where(identities.c.user_id == user_id).order_by(identities.c.created_at)
        return list((await self._connection.execute(statement)).all())

    async def by_subject(self, issuer: str, subject: str) -> Row[Any] | None:
        statement = select(identities).where(identities.c.issuer == issuer, identities.c.subject == subject)
        return (await self._connection.execute(statement)).one_or_none()

    async def add(self, **values: Any) -> bool:
        """False: the identity is somebody's already."""
        statement = insert(identities).values(**values).on_conflict_do_nothing().returning(identities.c.id)
        return (await self._connection.execute(statement)).first() is not None

    async def note_used(self, identity_id: UUID, now: datetime) -> None:
        await self._connection.execute(
            update(identities).where(identities.c.id == identity_id).values(last_used_at=now)
        )

    async def remove(self, user_id: UUID, identity_id: UUID) -> bool:
        statement = delete(identities).where(identities.c.user_id == user_id, identities.c.id == identity_id)
        return (await self._connection.execute(statement.returning(identities.c.id))).first() is not None
