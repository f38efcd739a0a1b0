"""API keys of one organization, and their secrets.

A revoked key stays, so that its id in tokens and logs keeps its meaning.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, func, or_

from quorate_api.database.scope import Scope
from quorate_api.database.tables import api_key_secrets, api_keys


class KeyRepository:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def insert(self, **values: object) -> None:
        await self._scope.connection.execute(self._scope.insert(api_keys, **values))

    async def page(self, project_id: UUID | None, limit: int, before: UUID | None) -> list[Row[Any]]:
        """Newest first. `project_id` None: the organization's own keys."""
        statement = (
            self._scope.select(api_keys)
            .where(api_keys.c.project_id.is_not_distinct_from(project_id), api_keys.c.revoked_at.is_(None))
            .order_by(api_keys.c.id.desc())
            .limit(limit)
        )
        if before is not None:
            statement = statement.where(api_keys.c.id < before)
        return list((await self._scope.connection.execute(statement)).all())

    async def get(self, key_id: UUID, *, lock: bool = False) -> Row[Any] | None:
        statement = self._scope.select(api_keys).where(api_keys.c.id == key_id, api_keys.c.revoked_at.is_(None))
        if lock:
            statement = statement.with_for_update()
        return (await self._scope.connection.execute(statement)).one_or_none()

    async def revoke(self, key_id: UUID, now: datetime) -> None:
        statement = self._scope.update(api_keys).where(api_keys.c.id == key_id)
        await self._scope.connection.execute(statement.values(revoked_at=now))

    async def organization_count(self) -> int:
        statement = self._scope.select(api_keys, func.count()).where(
            api_keys.c.project_id.is_(None), api_keys.c.revoked_at.is_(None)
        )
        return int((await self._scope.connection.execute(statement)).scalar_one())


class SecretRepository:
    """Secrets of keys: one of each, and during a rotation those before it."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def insert(self, **values: object) -> None:
        await self._scope.connection.execute(self._scope.insert(api_key_secrets, **values))

    async def of(self, key_ids: Iterable[UUID]) -> dict[UUID, list[Row[Any]]]:
        """By key, newest first."""
        statement = (
            self._scope.select(api_key_secrets)
            .where(api_key_secrets.c.key_id.in_(list(key_ids)))
            .order_by(api_key_secrets.c.created_at.desc(), api_key_secrets.c.id.desc())
        )
        found: dict[UUID, list[Row[Any]]] = {}
        for row in (await self._scope.connection.execute(statement)).all():
            found.setdefault(row.key_id, []).append(row)
        return found

    async def end(self, key_id: UUID, at: datetime) -> list[Row[Any]]:
        """No secret of the key is accepted from then on. Returns the secrets that would have been."""
        still = or_(api_key_secrets.c.ends_at.is_(None), api_key_secrets.c.ends_at > at)
        statement = self._scope.update(api_key_secrets).where(api_key_secrets.c.key_id == key_id, still)
        ended = statement.values(ends_at=at).returning(api_key_secrets.c.id, api_key_secrets.c.tokens_until)
        return list((await self._scope.connection.execute(ended)).all())
