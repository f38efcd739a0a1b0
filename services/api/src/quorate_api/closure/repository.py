"""An organization's standing, and all that is kept of it."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from quorate_api.database.scope import EveryOrganization, Scope
from quorate_api.database.tables import (
    OWNED,
    commitments,
    groups,
    guarantees,
    invoices,
    memberships,
    metadata,
    organizations,
    projects,
    users,
)

# Tables that an export leaves out, each with the reason.
LEFT_OUT = {
    "api_key_secrets": "secrets",
    "sessions": "secrets; people see their own",
    "webhook_secrets": "secrets",
    "revocations": "work of the service",
    "changed_months": "work of the service",
    "usage_dirty": "work of the service",
    "settled_logs": "work of the service: sums of usage_log_days",
    "settled_totals": "work of the service: sums of usage_days",
    "billed_quantities": "work of the service: sums of invoice_lines",
    "usage_hours": "minutes and hours of the last week: usage_days has the days",
    "usage_windows": "minutes and hours of the last week: usage_days has the days",
    "packed_hours": "minutes and hours of the last week: usage_days has the days",
    "payment_events": "the provider's own",
    "payment_checkouts": "links to the provider's pages, which have ended",
    "ledger_entries": "the seller's books: invoice_lines and invoice_taxes have the amounts",
}
# Columns that are secrets, or serve the service alone.
HIDDEN = frozenset({"organization_id", "token_hmac", "row_version", "unseen", "for_webhook_id", "dispatched_at"})
EXPORTED = tuple(sorted(OWNED - LEFT_OUT.keys()))


class StandingRepository:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def get(self, *, lock: bool = False) -> Row[Any] | None:
        statement = self._scope.select(organizations)
        if lock:
            statement = statement.with_for_update()
        return (await self._scope.connection.execute(statement)).one_or_none()

    async def set(self, **values: datetime | str | None) -> None:
        await self._scope.connection.execute(self._scope.update(organizations).values(**values))

    async def owners(self) -> list[str]:
        """Verified addresses."""
        statement = self._scope.select(memberships, users.c.email).join(users, users.c.id == memberships.c.user_id)
        statement = statement.where(memberships.c.role == "owner", users.c.email_verified_at.is_not(None))
        return [str(row.email) for row in (await self._scope.connection.execute(statement)).all()]

    async def open_commitments(self, now: datetime) -> list[datetime]:
        """The ends of those that run, or will."""
        statement = self._scope.select(commitments, commitments.c.ends_at).where(commitments.c.ends_at > now)
        return list((await self._scope.connection.execute(statement)).scalars())

    async def guaranteed_projects(self) -> list[str]:
        """Names of projects whose last change of a guarantee has not taken it back."""
        latest = self._scope.select(guarantees, guarantees.c.project_id, func.max(guarantees.c.revision).label("last"))
        newest = latest.group_by(guarantees.c.project_id).subquery()
        statement = (
            self._scope.select(guarantees, projects.c.name)
            .join(newest, (newest.c.project_id == guarantees.c.project_id) & (newest.c.last == guarantees.c.revision))
            .join(projects, projects.c.id == guarantees.c.project_id)
            .where(guarantees.c.terms.is_not(None))
        )
        return sorted((await self._scope.connection.execute(statement)).scalars())

    async def invoices(self) -> list[Row[Any]]:
        statement = self._scope.select(invoices).where(invoices.c.kind == "invoice").order_by(invoices.c.id)
        return list((await self._scope.connection.execute(statement)).all())


class ExportRepository:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def rows(self, table_name: str, batch: int) -> AsyncIterator[list[dict[str, Any]]]:
        """All rows of an owned table, without hidden columns, in batches that the server keeps until they are read."""
        table = metadata.tables[table_name]
        columns = [column for column in table.c if column.name not in HIDDEN]
        statement = self._scope.select(table, *columns)
        if table is memberships:
            columns.append(users.c.email)
            statement = self._scope.select(table, *columns).join(users, users.c.id == memberships.c.user_id)
        statement = statement.order_by(*table.primary_key.columns)
        async with self._scope.connection.stream(statement.execution_options(yield_per=batch)) as found:
            async for some in found.partitions():
                yield [dict(row._mapping) for row in some]


class ClosureRepository:
    """All organizations, for the worker."""

    def __init__(self, scope: EveryOrganization) -> None:
        self._scope = scope

    async def to_close(self, now: datetime) -> list[UUID]:
        statement = self._scope.select(organizations, organizations.c.organization_id).where(
            organizations.c.closed_at.is_(None), organizations.c.closes_at <= now
        )
        return list((await self._scope.connection.execute(statement)).scalars())

    async def close(self, organization_id: UUID, now: datetime) -> bool:
        """False: somebody reopened it, or another worker has closed it."""
        statement = (
            self._scope.update(organizations)
            .where(
                organizations.c.organization_id == organization_id,
                organizations.c.closed_at.is_(None),
                organizations.c.closes_at <= now,
            )
            .values(closed_at=now)
            .returning(organizations.c.organization_id)
        )
        return (await self._scope.connection.execute(statement)).first() is not None

    async def groups(self, organization_id: UUID) -> list[UUID]:
        """Groups that are there, without their partitions."""
        statement = self._scope.select(groups, groups.c.id).where(
            groups.c.organization_id == organization_id,
            groups.c.partition_of.is_(None),
            groups.c.delete_requested_at.is_(None),
        )
        return list((await self._scope.connection.execute(statement)).scalars())

    async def to_erase(self, closed_before: datetime) -> list[UUID]:
        statement = self._scope.select(organizations, organizations.c.organization_id).where(
            organizations.c.erased_at.is_(None), organizations.c.closed_at <= closed_before
        )
        return list((await self._scope.connection.execute(statement)).scalars())

    async def erase(self, organization_id: UUID) -> bool:
        """False: another worker has erased it."""
        statement = select(func.erase_organization(organization_id))
        return bool((await self._scope.connection.execute(statement)).scalar_one())


class TenantRepository:
    """For operators. The SQL function called here goes past row-level security, and tells sums alone."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def page(self, search: str | None, after: UUID | None, limit: int) -> list[Row[Any]]:
        """Newest first."""
        columns = (
            "organization_id", "name", "created_at", "standing", "members", "groups", "rate_per_s", "hourly_micros"
        )  # fmt: skip
        if (wanted := _id_in(search)) is not None:  # that organization, and none whose name looks like its id
            search, after, limit = str(wanted), UUID(int=min(wanted.int + 1, 2**128 - 1)), 1
        found = func.find_organizations(search, after, limit).table_valued(*columns)
        rows = list((await self._connection.execute(select(found))).all())
        return [row for row in rows if wanted is None or row.organization_id == wanted]


def _id_in(search: str | None) -> UUID | None:
    try:
        return UUID(search) if search is not None else None
    except ValueError:
        return None
