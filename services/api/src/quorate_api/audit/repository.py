"""The audit logs of organizations, and that of operators. Rows are only added; a trigger refuses everything else."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, delete, func, insert, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from quorate_api.audit.chain import Linked
from quorate_api.audit.copies import OPERATORS, Copy, Name
from quorate_api.database.scope import EveryOrganization, Scope
from quorate_api.database.tables import audit_events, operator_events, organizations, uncopied_events


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


class CopyRepository:
    """Events of all logs, for the worker that copies them and for the command that compares."""

    def __init__(self, scope: EveryOrganization) -> None:
        self._scope = scope

    async def take_turn(self) -> bool:
        """False: another worker copies until its transaction ends."""
        key = func.hashtextextended("audit copies", 0)
        return bool((await self._scope.connection.execute(select(func.pg_try_advisory_xact_lock(key)))).scalar_one())

    async def waiting(self, limit: int | None) -> list[Name]:
        """Events that are not copied yet, each log's in order."""
        statement = select(uncopied_events).order_by(uncopied_events.c.log, uncopied_events.c.seq).limit(limit)
        return [(row.log, row.seq) for row in (await self._scope.connection.execute(statement)).all()]

    async def forget(self, names: Sequence[Name]) -> None:
        named = tuple_(uncopied_events.c.log, uncopied_events.c.seq).in_(names)
        await self._scope.connection.execute(delete(uncopied_events).where(named))

    async def named(self, names: Sequence[Name]) -> list[Copy]:
        """Each log's in order, without those that are not there."""
        of_organizations = [(UUID(log), seq) for log, seq in names if log != OPERATORS]
        found: list[Copy] = []
        if of_organizations:
            columns = audit_events.c
            statement = (
                self._scope.select(audit_events)
                .where(tuple_(columns.organization_id, columns.seq).in_(of_organizations))
                .order_by(columns.organization_id, columns.seq)
            )
            rows = (await self._scope.connection.execute(statement)).all()
            found += [Copy(str(row.organization_id), Linked(row.seq, row.event, row.hash)) for row in rows]
        of_operators = [seq for log, seq in names if log == OPERATORS]
        if of_operators:
            chosen = select(operator_events).where(operator_events.c.seq.in_(of_operators))
            rows = (await self._scope.connection.execute(chosen.order_by(operator_events.c.seq))).all()
            found += [Copy(OPERATORS, Linked(row.seq, row.event, row.hash)) for row in rows]
        return found

    async def newest(self) -> dict[str, int]:
        """The last number of each log that has events."""
        columns = audit_events.c
        statement = self._scope.select(audit_events, columns.organization_id, func.max(columns.seq).label("seq"))
        rows = (await self._scope.connection.execute(statement.group_by(columns.organization_id))).all()
        found = {str(row.organization_id): int(row.seq) for row in rows}
        of_operators = (await self._scope.connection.execute(select(func.max(operator_events.c.seq)))).scalar_one()
        return found if of_operators is None else found | {OPERATORS: int(of_operators)}

    async def erased(self) -> list[str]:
        statement = self._scope.select(organizations, organizations.c.organization_id)
        erased = statement.where(organizations.c.erased_at.is_not(None))
        return [str(each) for each in (await self._scope.connection.execute(erased)).scalars()]
