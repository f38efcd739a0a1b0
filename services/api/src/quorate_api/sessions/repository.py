"""Sessions: of one organization in its scope, and of one person over all of them."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from quorate_api import limits
from quorate_api.database.scope import Scope
from quorate_api.database.tables import sessions


class SessionRepository:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def add(self, **values: object) -> None:
        await self._scope.connection.execute(self._scope.insert(sessions, **values))

    async def end(self, session_id: UUID) -> list[Row[Any]]:
        """The ended one, if there was one."""
        statement: Any = self._scope.delete(sessions).where(sessions.c.id == session_id)
        ended = statement.returning(sessions.c.id, sessions.c.tokens_until)
        return list((await self._scope.connection.execute(ended)).all())

    async def end_of(self, user_id: UUID) -> list[Row[Any]]:
        """All of the person's in this organization."""
        statement: Any = self._scope.delete(sessions).where(sessions.c.user_id == user_id)
        ended = statement.returning(sessions.c.id, sessions.c.tokens_until)
        return list((await self._scope.connection.execute(ended)).all())

    async def note_confirmed(self, session_id: UUID, now: datetime) -> None:
        statement = self._scope.update(sessions).where(sessions.c.id == session_id)
        await self._scope.connection.execute(statement.values(authenticated_at=now))


class PersonSessionRepository:
    """A person's sessions in all organizations. The SQL functions called here see no other person's."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def all_of(self, user_id: UUID) -> list[Row[Any]]:
        """The one used last first."""
        columns = (
            "id", "organization_id", "organization_name", "created_at", "last_seen_at", "expires_at", "address",
            "user_agent",
        )  # fmt: skip
        found = func.find_sessions_of(user_id).table_valued(*columns)
        statement = select(found).order_by(found.c.last_seen_at.desc(), found.c.id).limit(limits.SESSIONS_SHOWN_MAX)
        return list((await self._connection.execute(statement)).all())

    async def end(self, user_id: UUID, *, only: UUID | None = None, kept: UUID | None = None) -> int:
        """End sessions; tokens that were issued for them are revoked. Returns their number."""
        ended = func.end_sessions_of(user_id, only, kept).table_valued("id")
        return len((await self._connection.execute(select(ended))).all())
