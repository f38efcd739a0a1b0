"""Users, organizations, memberships, sessions."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from quorate_api.database.scope import Scope
from quorate_api.database.tables import memberships, organizations, sessions, users


class UserRepository:
    """Users belong to no organization, because one person may be a member of several."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def insert(self, user_id: UUID, email: str, password_hash: str, now: datetime) -> bool:
        """False if the e-mail is taken."""
        statement = (
            insert(users)
            .values(id=user_id, email=email, password_hash=password_hash, created_at=now)
            .on_conflict_do_nothing()
            .returning(users.c.id)
        )
        return (await self._connection.execute(statement)).first() is not None

    async def by_email(self, email: str) -> Row[Any] | None:
        return (await self._connection.execute(select(users).where(users.c.email == email))).one_or_none()

    async def by_id(self, user_id: UUID) -> Row[Any]:
        return (await self._connection.execute(select(users).where(users.c.id == user_id))).one()

    async def memberships(self, user_id: UUID) -> list[Row[Any]]:
        """Oldest first."""
        found = func.find_memberships(user_id).table_valued("organization_id", "role", "created_at")
        return list((await self._connection.execute(select(found).order_by(found.c.created_at))).all())


class OrganizationRepository:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def insert(self, name: str, now: datetime) -> None:
        await self._scope.connection.execute(self._scope.insert(organizations, name=name, created_at=now))

    async def get(self) -> Row[Any]:
        return (await self._scope.connection.execute(self._scope.select(organizations))).one()

    async def add_member(self, user_id: UUID, role: str, now: datetime) -> None:
        statement = self._scope.insert(memberships, user_id=user_id, role=role, created_at=now)
        await self._scope.connection.execute(statement)

    async def add_session(
        self, session_id: UUID, user_id: UUID, token_hmac: bytes, now: datetime, expires_at: datetime
    ) -> None:
        statement = self._scope.insert(
            sessions, id=session_id, user_id=user_id, token_hmac=token_hmac, created_at=now, expires_at=expires_at
        )
        await self._scope.connection.execute(statement)

    async def end_session(self, token_hmac: bytes) -> list[Row[Any]]:
        """The ended one, if there was one."""
        statement = self._scope.delete(sessions).where(sessions.c.token_hmac == token_hmac)
        ended: Any = statement.returning(sessions.c.id, sessions.c.tokens_until)
        return list((await self._scope.connection.execute(ended)).all())
