"""The audit logs of organizations, and that of operators. Rows are only added; a trigger refuses everything else."""

from datetime import datetime
from typing import Any

from sqlalchemy import Row, func, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from quorate_api.database.scope import Scope
from quorate_api.database.tables import audit_events, operator_events


class AuditRepository:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def lock(self) -> None:
        """Take turns with every change of the organization until the transaction ends. Call it last: whoever has it
        waits for nothing else."""
        key = func.hashtextextended(f"audit {self._scope.organization_id}", 0)
        await self._scope.connection.execute(select(func.pg_advisory_xact_lock(key)))

    async def last(self) -> Row[Any] | None:
        statement = self._scope.select(audit_events, audit_events.c.seq, audit_events.c.hash)
        newest = statement.order_by(audit_events.c.seq.desc()).limit(1)
        return (await self._scope.connection.execute(newest)).one_or_none()

    async def add(self, seq: int, at: datetime, event: str, digest: bytes) -> None:
        statement = self._scope.insert(audit_events, seq=seq, at=at, event=event, hash=digest)
        await self._scope.connection.execute(statement)

    async def page(self, limit: int, before: int | None) -> list[Row[Any]]:
        """Newest first."""
        statement = self._scope.select(audit_events).order_by(audit_events.c.seq.desc()).limit(limit)
        if before is not None:
            statement = statement.where(audit_events.c.seq < before)
        return list((await self._scope.connection.execute(statement)).all())

    async def after(self, seq: int, limit: int) -> list[Row[Any]]:
        """Oldest first."""
        statement = self._scope.select(audit_events).where(audit_events.c.seq > seq)
        return list((await self._scope.connection.execute(statement.order_by(audit_events.c.seq).limit(limit))).all())


class OperatorAuditRepository:
    """The operators' log. It belongs to no organization."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def lock(self) -> None:
        """Take turns with every change of operators until the transaction ends."""
        key = func.hashtextextended("audit operators", 0)
        await self._connection.execute(select(func.pg_advisory_xact_lock(key)))

    async def last(self) -> Row[Any] | None:
        newest = select(operator_events).order_by(operator_events.c.seq.desc()).limit(1)
        return (await self._connection.execute(newest)).one_or_none()

    async def add(self, seq: int, at: datetime, event: str, digest: bytes) -> None:
        await self._connection.execute(insert(operator_events).values(seq=seq, at=at, event=event, hash=digest))

    async def page(self, limit: int, before: int | None) -> list[Row[Any]]:
        """Newest first."""
        statement = select(operator_events).order_by(operator_events.c.seq.desc()).limit(limit)
        if before is not None:
            statement = statement.where(operator_events.c.seq < before)
        return list((await self._connection.execute(statement)).all())

    async def after(self, seq: int, limit: int) -> list[Row[Any]]:
        """Oldest first."""
        statement = select(operator_events).where(operator_events.c.seq > seq).order_by(operator_events.c.seq)
        return list((await self._connection.execute(statement.limit(limit))).all())
