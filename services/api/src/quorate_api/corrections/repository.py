"""Corrections of usage and of SLA minutes. Rows are only added; operators enter them."""

from collections import defaultdict
from datetime import date
from typing import Any
from uuid import UUID

from sqlalchemy import Row, and_

from quorate_api.corrections.correction import UsageCorrection
from quorate_api.database.scope import Scope, SomeOrganizations
from quorate_api.database.tables import corrections, invoice_lines

SLA_MINUTES = "sla_minutes"
# The clause that is breached, by the kind of the correction.
BREACHES = {"sla_durability": "durability", "sla_order": "order"}
OF_MINUTES = (SLA_MINUTES, *BREACHES)

_COLUMNS = corrections.c


def breached_by(kind: str) -> str | None:
    """The clause that a correction of minutes says was breached. None: it says that they are bad."""
    return BREACHES.get(kind)


class CorrectionRepository:
    def __init__(self, scope: Scope | SomeOrganizations) -> None:
        self._scope = scope

    async def insert(self, **values: object) -> None:
        assert isinstance(self._scope, Scope), "one organization"
        await self._scope.connection.execute(self._scope.insert(corrections, **values))

    async def usage(self) -> dict[UUID, list[UsageCorrection]]:
        """All corrections of usage, oldest first, by group."""
        billed = invoice_lines.c.invoice_id.is_not(None).label("is_billed")
        line = and_(
            invoice_lines.c.organization_id == _COLUMNS.organization_id, invoice_lines.c.correction_id == _COLUMNS.id
        )
        names = ("id", "group_id", "kind", "quantity", "day", "reason")
        statement = self._scope.select(corrections, *(_COLUMNS[name] for name in names), billed)
        statement = (
            statement.outerjoin(invoice_lines, line).where(_COLUMNS.kind.not_in(OF_MINUTES)).order_by(_COLUMNS.id)
        )
        found: dict[UUID, list[UsageCorrection]] = defaultdict(list)
        for row in (await self._scope.connection.execute(statement)).all():
            found[row.group_id].append(UsageCorrection(*row))
        return dict(found)

    async def of_days(self, group_id: UUID, start: date, end: date) -> list[Row[Any]]:
        """Corrections of the group's usage on days in [start, end), oldest first."""
        statement = self._scope.select(corrections).where(
            _COLUMNS.group_id == group_id, _COLUMNS.day >= start, _COLUMNS.day < end
        )
        return list((await self._scope.connection.execute(statement.order_by(_COLUMNS.id))).all())

    async def bad_spans(self, group_id: UUID, from_s: int, to_s: int) -> list[Row[Any]]:
        """Corrections of the group's SLA minutes that reach into [from_s, to_s), oldest first."""
        statement = self._scope.select(corrections).where(
            _COLUMNS.group_id == group_id, _COLUMNS.start_s < to_s, _COLUMNS.end_s > from_s
        )
        return list((await self._scope.connection.execute(statement.order_by(_COLUMNS.id))).all())

    async def page(self, group_id: UUID, limit: int, before: UUID | None) -> list[Row[Any]]:
        """The group's corrections, newest first."""
        statement = self._scope.select(corrections).where(_COLUMNS.group_id == group_id)
        if before is not None:
            statement = statement.where(_COLUMNS.id < before)
        statement = statement.order_by(_COLUMNS.id.desc()).limit(limit)
        return list((await self._scope.connection.execute(statement)).all())
