"""Answers to admissions. The SQL functions called here go past row-level security, for operators alone."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from quorate_api.database.scope import EveryOrganization, Scope
from quorate_api.database.tables import admissions


class AdmissionRepository:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def add(self, **values: object) -> None:
        await self._scope.connection.execute(self._scope.insert(admissions, **values))


class AllAdmissions:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def page(self, outcome: str | None, after: UUID | None, limit: int) -> list[Row[Any]]:
        """Newest first."""
        names = (
            "id", "organization_id", "organization_name", "at", "operation", "subject", "asked", "outcome", "code",
            "reason", "scarce_resource", "message",
        )  # fmt: skip
        found = func.find_admissions(outcome, after, limit).table_valued(*names)
        return list((await self._connection.execute(select(found))).all())

    async def counts(self, since: datetime) -> list[Row[Any]]:
        found = func.count_admissions(since).table_valued("outcome", "code", "reason", "scarce_resource", "count")
        return list((await self._connection.execute(select(found))).all())


class OldAdmissions:
    """For the worker."""

    def __init__(self, scope: EveryOrganization) -> None:
        self._scope = scope

    async def forget(self, before: datetime) -> None:
        await self._scope.connection.execute(self._scope.delete(admissions).where(admissions.c.at < before))
