"""API keys of one organization. A revoked key stays, so that its id in tokens and logs keeps its meaning."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, func

from quorate_api.database.scope import Scope
from quorate_api.database.tables import api_keys


class KeyRepository:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def insert(self, **values: object) -> None:
        await self._scope.connection.execute(self._scope.insert(api_keys, **values))

    async def page(self, project_id: UUID, limit: int, before: UUID | None) -> list[Row[Any]]:
        statement = (
            self._scope.select(api_keys)
            .where(api_keys.c.project_id == project_id, api_keys.c.revoked_at.is_(None))
            .order_by(api_keys.c.id.desc())
            .limit(limit)
        )
        if before is not None:
            statement = statement.where(api_keys.c.id < before)
        return list((await self._scope.connection.execute(statement)).all())

    async def revoke(self, key_id: UUID, now: datetime) -> bool:
        """False if there is no such key, or it was revoked before."""
        statement = (
            self._scope.update(api_keys)
            .where(api_keys.c.id == key_id, api_keys.c.revoked_at.is_(None))
            .values(revoked_at=now)
            .returning(api_keys.c.id)
        )
        return (await self._scope.connection.execute(statement)).first() is not None

    async def get(self, key_id: UUID) -> Row[Any] | None:
        statement = self._scope.select(api_keys).where(api_keys.c.id == key_id, api_keys.c.revoked_at.is_(None))
        return (await self._scope.connection.execute(statement)).one_or_none()

    async def organization_page(self, limit: int, before: UUID | None) -> list[Row[Any]]:
        """The organization's own keys, newest first."""
        statement = (
            self._scope.select(api_keys)
            .where(api_keys.c.project_id.is_(None), api_keys.c.revoked_at.is_(None))
            .order_by(api_keys.c.id.desc())
            .limit(limit)
        )
        if before is not None:
            statement = statement.where(api_keys.c.id < before)
        return list((await self._scope.connection.execute(statement)).all())

    async def organization_count(self) -> int:
        statement = self._scope.select(api_keys, func.count()).where(
            api_keys.c.project_id.is_(None), api_keys.c.revoked_at.is_(None)
        )
        return int((await self._scope.connection.execute(statement)).scalar_one())
