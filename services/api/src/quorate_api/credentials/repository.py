"""Until when servers accept tokens of a session or of a key's secret, and which of them are revoked."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, func, or_

from quorate_api.database.scope import EveryOrganization, Scope
from quorate_api.database.tables import api_key_secrets, revocations, sessions


class TokenRepository:
    """Of one organization."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def note_of_secret(self, secret_id: UUID, until: datetime, now: datetime) -> bool:
        """A token is issued that ends then. False: the secret has ended meanwhile. The row stays locked, so that a
        revocation waits for this transaction and knows of the token."""
        still = or_(api_key_secrets.c.ends_at.is_(None), api_key_secrets.c.ends_at > now)
        statement = self._scope.update(api_key_secrets).where(api_key_secrets.c.id == secret_id, still)
        latest = func.greatest(api_key_secrets.c.tokens_until, until)
        noted = statement.values(tokens_until=latest).returning(api_key_secrets.c.id)
        return (await self._scope.connection.execute(noted)).first() is not None

    async def note_of_session(self, session_id: UUID, until: datetime) -> bool:
        """The same, of a session."""
        statement = self._scope.update(sessions).where(sessions.c.id == session_id)
        latest = func.greatest(sessions.c.tokens_until, until)
        noted = statement.values(tokens_until=latest).returning(sessions.c.id)
        return (await self._scope.connection.execute(noted)).first() is not None

    async def revoke(self, credentials: Iterable[tuple[UUID, datetime]], now: datetime) -> None:
        """Credentials, each with the time until which servers are to refuse its tokens."""
        for credential_id, until in credentials:
            statement = self._scope.upsert(revocations, credential_id=credential_id, revoked_at=now, until=until)
            await self._scope.connection.execute(statement.on_conflict_do_nothing())


class RevocationRepository:
    """For the worker, which tells the coordinator."""

    def __init__(self, scope: EveryOrganization) -> None:
        self._scope = scope

    async def untold(self, now: datetime, limit: int) -> list[Row[Any]]:
        """Oldest first."""
        statement = (
            self._scope.select(revocations, revocations.c.credential_id, revocations.c.until, revocations.c.revoked_at)
            .where(revocations.c.told_at.is_(None), revocations.c.until > now)
            .order_by(revocations.c.revoked_at)
            .limit(limit)
        )
        return list((await self._scope.connection.execute(statement)).all())

    async def note_told(self, credential_ids: Iterable[UUID], now: datetime) -> None:
        statement = self._scope.update(revocations).where(revocations.c.credential_id.in_(list(credential_ids)))
        await self._scope.connection.execute(statement.values(told_at=now))

    async def forget_expired(self, now: datetime) -> None:
        await self._scope.connection.execute(self._scope.delete(revocations).where(revocations.c.until <= now))
