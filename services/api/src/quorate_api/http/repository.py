"""Lookup of callers, and answers stored for Idempotency-Keys. Neither knows its organization yet."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from quorate_api.database.scope import Scope
from quorate_api.database.tables import api_key_secrets, api_keys, idempotency_keys, organizations, sessions


class PrincipalRepository:
    """The SQL functions called here are the only way past row-level security. Each returns one row or few."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def find_api_key(self, secret_hmac: bytes) -> Row[Any] | None:
        found = func.find_api_key(secret_hmac).table_valued(
            "id",
            "organization_id",
            "project_id",
            "scopes",
            "revoked_at",
            "last_used_at",
            "credential_id",
            "ends_at",
            "tokens_until",
            "standing",
        )
        return (await self._connection.execute(select(found))).one_or_none()

    async def find_session(self, token_hmac: bytes) -> Row[Any] | None:
        found = func.find_session(token_hmac).table_valued(
            "id",
            "organization_id",
            "user_id",
            "expires_at",
            "role",
            "tokens_until",
            "authenticated_at",
            "last_seen_at",
            "standing",
        )
        return (await self._connection.execute(select(found))).one_or_none()

    async def standing(self, scope: Scope) -> Any:
        """The standing of the organization that was entered."""
        statement = scope.select(organizations, organizations.c.standing)
        return (await scope.connection.execute(statement)).scalar_one()

    async def organization_of(self, group_id: UUID) -> UUID | None:
        """For operators alone, who name a group and not its organization."""
        found = select(func.find_group(group_id).table_valued("organization_id"))
        owner: UUID | None = (await self._connection.execute(found)).scalar_one_or_none()
        return owner

    async def touch_api_key(self, scope: Scope, key_id: UUID, now: datetime) -> None:
        await scope.connection.execute(scope.update(api_keys).where(api_keys.c.id == key_id).values(last_used_at=now))

    async def keep_api_key(self, scope: Scope, credential_id: UUID, secret_hmac: bytes, under: str) -> None:
        statement = scope.update(api_key_secrets).where(api_key_secrets.c.id == credential_id)
        await scope.connection.execute(statement.values(secret_hmac=secret_hmac, under=under))

    async def keep_session(self, scope: Scope, session_id: UUID, token_hmac: bytes) -> None:
        statement = scope.update(sessions).where(sessions.c.id == session_id)
        await scope.connection.execute(statement.values(token_hmac=token_hmac))

    async def touch_session(self, scope: Scope, session_id: UUID, now: datetime) -> None:
        statement = scope.update(sessions).where(sessions.c.id == session_id)
        await scope.connection.execute(statement.values(last_seen_at=now))


class IdempotencyRepository:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def insert(
        self, record_id: UUID, principal: str, key_hmac: bytes, fingerprint: bytes, now: datetime, until: datetime
    ) -> bool:
        statement = (
            insert(idempotency_keys)
            .values(
                id=record_id,
                principal=principal,
                key_hmac=key_hmac,
                fingerprint=fingerprint,
                created_at=now,
                locked_until=until,
            )
            .on_conflict_do_nothing()
            .returning(idempotency_keys.c.id)
        )
        return (await self._connection.execute(statement)).first() is not None

    async def lock(self, principal: str, key_hmacs: Sequence[bytes]) -> Row[Any] | None:
        statement = (
            select(idempotency_keys)
            .where(idempotency_keys.c.principal == principal, idempotency_keys.c.key_hmac.in_(key_hmacs))
            .with_for_update()
        )
        return (await self._connection.execute(statement)).one_or_none()

    async def lock_until(self, record_id: UUID, until: datetime) -> None:
        await self._connection.execute(
            update(idempotency_keys).where(idempotency_keys.c.id == record_id).values(locked_until=until)
        )

    async def store(self, record_id: UUID, answer: bytes) -> None:
        await self._connection.execute(
            update(idempotency_keys).where(idempotency_keys.c.id == record_id).values(answer=answer)
        )

    async def forget(self, record_id: UUID) -> None:
        await self._connection.execute(delete(idempotency_keys).where(idempotency_keys.c.id == record_id))
