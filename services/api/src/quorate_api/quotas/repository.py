"""Use of an organization's quotas, and its limits that differ from the defaults."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, Row, cast, func, select
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.elements import ColumnElement

from quorate_api.database.scope import Rows, Scope
from quorate_api.database.tables import (
    api_keys,
    groups,
    memberships,
    organizations,
    projects,
    quota_overrides,
    quota_requests,
    users,
)
from quorate_api.guaranteed.repository import GuaranteeRepository


class QuotaRepository:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def lock(self) -> None:
        """Lock the organization's row until the transaction ends."""
        await self._scope.connection.execute(self._scope.select(organizations).with_for_update())

    async def overrides(self) -> dict[str, int]:
        rows = (await self._scope.connection.execute(self._scope.select(quota_overrides))).all()
        return {row.code: row.limit_value for row in rows}

    async def set(self, code: str, limit: int) -> None:
        upsert = self._scope.upsert(quota_overrides, code=code, limit_value=limit)
        replacing = upsert.on_conflict_do_update(
            index_elements=["organization_id", "code"], set_={"limit_value": limit}
        )
        await self._scope.connection.execute(replacing)

    async def unset(self, code: str) -> None:
        statement = self._scope.delete(quota_overrides).where(quota_overrides.c.code == code)
        await self._scope.connection.execute(statement)

    async def requested(self) -> dict[str, int]:
        rows = (await self._scope.connection.execute(self._scope.select(quota_requests))).all()
        return {row.code: row.wanted for row in rows}

    async def ask(self, code: str, wanted: int, reason: str, asked_by: UUID, now: datetime) -> None:
        values = {"wanted": wanted, "reason": reason, "asked_by": asked_by, "created_at": now}
        upsert = self._scope.upsert(quota_requests, code=code, **values)
        replacing = upsert.on_conflict_do_update(index_elements=["organization_id", "code"], set_=values)
        await self._scope.connection.execute(replacing)

    async def end_request(self, code: str) -> bool:
        """False: there is none."""
        statement = self._scope.delete(quota_requests).where(quota_requests.c.code == code)
        return (await self._scope.connection.execute(statement.returning(quota_requests.c.code))).first() is not None

    async def is_verified(self) -> bool:
        """Whether an owner has verified an address."""
        owners = (
            self._scope.select(memberships, func.count())
            .join(users, users.c.id == memberships.c.user_id)
            .where(memberships.c.role == "owner", users.c.email_verified_at.is_not(None))
        )
        return await self._count(owners) > 0

    async def lock_strangers(self) -> None:
        """Take turns with every organization without such an owner, until the transaction ends.

        Call it after `lock`: its holder waits for no other organization.
        """
        key = func.hashtextextended("quota strangers", 0)
        await self._scope.connection.execute(select(func.pg_advisory_xact_lock(key)))

    async def unverified_rate_per_s(self) -> int:
        """Reserved appends of all organizations without such an owner together, but for those with a rate of their own.

        A group under resize counts with the greater of both rates.
        """
        found = select(func.unverified_rate_per_s().table_valued("rate_per_s"))
        return int((await self._scope.connection.execute(found)).scalar_one())

    async def projects(self) -> int:
        return await self._count(self._scope.select(projects, func.count()).where(projects.c.deleted_at.is_(None)))

    async def keys(self, project_id: UUID | None) -> int:
        """API keys of one project, or the most that any project has."""
        statement = self._scope.select(api_keys, func.count()).where(api_keys.c.revoked_at.is_(None))
        if project_id is not None:
            return await self._count(statement.where(api_keys.c.project_id == project_id))
        return await self._count(statement.group_by(api_keys.c.project_id).order_by(func.count().desc()).limit(1))

    async def groups(self, project_id: UUID | None) -> int:
        """Groups of one project, or the most that any project has. Partitions beside the first do not count."""
        return await self._groups(groups.c.partition_of.is_(None), project_id)

    async def partitions(self, project_id: UUID | None) -> int:
        """Partitions of one project beside the first of each group, or the most that any project has."""
        return await self._groups(groups.c.partition_of.is_not(None), project_id)

    async def _groups(self, counts: ColumnElement[bool], project_id: UUID | None) -> int:
        statement = self._scope.select(groups, func.count()).where(groups.c.deleted_at.is_(None), counts)
        if project_id is not None:
            return await self._count(statement.where(groups.c.project_id == project_id))
        return await self._count(statement.group_by(groups.c.project_id).order_by(func.count().desc()).limit(1))

    async def rate_per_s(self) -> int:
        """Reserved appends of all groups; a group under resize counts with the greater of both rates."""
        resized = cast(groups.c.resize["sla"]["rate_per_s"].astext, BigInteger)
        rate = func.greatest(groups.c.rate_per_s, func.coalesce(resized, 0))
        return await self._count(self._scope.select(groups, func.sum(rate)).where(groups.c.deleted_at.is_(None)))

    async def read_rate_per_s(self) -> int:
        """The same of reads. Groups from before reads could be reserved have none."""
        asked, resized = (
            func.coalesce(cast(sla["read_rate_per_s"].astext, BigInteger), 0)
            for sla in (groups.c.sla, groups.c.resize["sla"])
        )
        rate = func.greatest(asked, resized)
        return await self._count(self._scope.select(groups, func.sum(rate)).where(groups.c.deleted_at.is_(None)))

    async def guaranteed_tokens_per_s(self) -> int:
        return await GuaranteeRepository(self._scope).tokens_per_s()

    async def _count(self, statement: Rows) -> int:
        return int((await self._scope.connection.execute(statement)).scalar() or 0)


class AllQuotaRequests:
    """For operators. The SQL function called here goes past row-level security."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def all(self) -> list[Row[Any]]:
        """Oldest first, at most 500."""
        names = ("organization_id", "organization_name", "code", "wanted", "reason", "asked_by", "created_at")
        found = func.find_quota_requests().table_valued(*names)
        return list((await self._connection.execute(select(found))).all())
