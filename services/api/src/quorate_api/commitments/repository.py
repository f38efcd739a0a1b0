"""Commitments. Rows are only added."""

from collections import defaultdict
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, func

from quorate_api.commitments.calculator import Commitment
from quorate_api.database.scope import Scope, SomeOrganizations
from quorate_api.database.tables import commitments, groups

_COLUMNS = commitments.c


class CommitmentRepository:
    def __init__(self, scope: Scope | SomeOrganizations) -> None:
        self._scope = scope

    async def by_organization(self) -> dict[UUID, list[Commitment]]:
        """All that were ever made, oldest first."""
        found: dict[UUID, list[Commitment]] = defaultdict(list)
        for row in await self._rows():
            found[row.organization_id].append(commitment_of(row))
        return dict(found)

    async def all_of(self) -> list[Row[Any]]:
        """Newest first."""
        return list(reversed(await self._rows()))

    async def insert(self, commitment: Commitment, **values: object) -> None:
        assert isinstance(self._scope, Scope), "one organization's"
        kept = self._scope.insert(
            commitments,
            id=commitment.id,
            monthly_micros=commitment.monthly_micros,
            months=commitment.months,
            discount_percent=commitment.discount_percent,
            starts_at=commitment.start,
            ends_at=commitment.end,
            **values,
        )
        await self._scope.connection.execute(kept)

    async def _rows(self) -> list[Row[Any]]:
        statement = self._scope.select(commitments).order_by(_COLUMNS.id)
        return list((await self._scope.connection.execute(statement)).all())

    async def first_at(self) -> datetime | None:
        """The begin of the first one. None: there is none."""
        statement = self._scope.select(commitments, func.min(_COLUMNS.starts_at))
        found: datetime | None = (await self._scope.connection.execute(statement)).scalar_one()
        return found

    async def reserved_hourly_micros(self) -> int:
        """The cost of an hour of all reservations that go on."""
        statement = self._scope.select(groups, func.coalesce(func.sum(groups.c.hourly_micros), 0)).where(
            groups.c.active_at.is_not(None), groups.c.delete_requested_at.is_(None)
        )
        return int((await self._scope.connection.execute(statement)).scalar_one())


def commitment_of(row: Row[Any]) -> Commitment:
    return Commitment(row.id, row.monthly_micros, row.months, row.discount_percent, row.starts_at, row.ends_at)
