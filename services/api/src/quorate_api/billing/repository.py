"""Invoices, their lines, the ledger. Written once, by closes and adjustments; triggers refuse changes."""

from collections import defaultdict
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, and_, func, or_
from sqlalchemy.dialects.postgresql import insert as upsert

from quorate_api.billing.calculator import Line
from quorate_api.database.scope import Scope, SomeOrganizations
from quorate_api.database.tables import (
    billed_quantities,
    document_counters,
    former_slas,
    groups,
    invoice_lines,
    invoice_taxes,
    invoices,
    ledger_entries,
    organizations,
)
from quorate_api.tax.parties import Customer
from quorate_api.tax.port import TaxLine

# Reading the other columns takes as long again.
_GROUP = (
    "id", "organization_id", "project_id", "name", "sla", "hourly_micros", "created_at", "active_at",
    "delete_requested_at", "deleted_at", "availability_ppm",
)  # fmt: skip


class BillingRepository:
    """Closes and adjustments write, for one organization. A batch of organizations is read only."""

    def __init__(self, scope: Scope | SomeOrganizations) -> None:
        self._scope = scope

    @property
    def own(self) -> Scope:
        assert isinstance(self._scope, Scope), "one organization"
        return self._scope

    async def billable_groups(self, before: datetime) -> list[Row[Any]]:
        """Groups admitted until `before`. Deleted ones count too: their last days are owed."""
        statement = (
            self._scope.select(groups, *(groups.c[name] for name in _GROUP))
            .where(groups.c.created_at < before, or_(groups.c.active_at.is_not(None), groups.c.deleted_at.is_not(None)))
            .order_by(groups.c.id)
        )
        return list((await self._scope.connection.execute(statement)).all())

    async def billed(self) -> dict[UUID, dict[str, int]]:
        """Quantities on issued invoices, by group and kind. Corrections are not in them."""
        columns = billed_quantities.c
        pairs = (func.array_agg(columns.kind), func.array_agg(columns.quantity))
        statement = self._scope.select(billed_quantities, columns.group_id, *pairs).group_by(columns.group_id)
        rows = (await self._scope.connection.execute(statement)).all()
        return {group_id: dict(zip(kinds, quantities, strict=True)) for group_id, kinds, quantities in rows}

    async def former_slas(self) -> dict[UUID, list[Row[Any]]]:
        """Former SLAs of resized groups, by group."""
        found: dict[UUID, list[Row[Any]]] = defaultdict(list)
        for row in (await self._scope.connection.execute(self._scope.select(former_slas))).all():
            found[row.group_id].append(row)
        return found

    async def first_group_at(self) -> datetime | None:
        statement = self._scope.select(groups, func.min(groups.c.active_at))
        found: datetime | None = (await self._scope.connection.execute(statement)).scalar_one()
        return found

    async def page(self, limit: int, before: UUID | None) -> list[Row[Any]]:
        statement = self._scope.select(invoices).order_by(invoices.c.id.desc()).limit(limit)
        if before is not None:
            statement = statement.where(invoices.c.id < before)
        return list((await self._scope.connection.execute(statement)).all())

    async def get(self, invoice_id: UUID) -> Row[Any] | None:
        statement = self._scope.select(invoices).where(invoices.c.id == invoice_id)
        return (await self._scope.connection.execute(statement)).one_or_none()

    async def invoice_of(self, period_start: datetime) -> Row[Any] | None:
        """The invoice of the month that begins then. None: nothing was owed, or it is not closed."""
        statement = self._scope.select(invoices).where(
            invoices.c.kind == "invoice", invoices.c.period_start == period_start
        )
        return (await self._scope.connection.execute(statement)).one_or_none()

    async def lines(self, invoice_id: UUID) -> list[Row[Any]]:
        statement = (
            self._scope.select(invoice_lines)
            .where(invoice_lines.c.invoice_id == invoice_id)
            .order_by(invoice_lines.c.position)
        )
        return list((await self._scope.connection.execute(statement)).all())

    async def credited(self, invoice_id: UUID) -> list[Row[Any]]:
        """Lines of the credit notes of an invoice."""
        of_note = and_(
            invoices.c.organization_id == invoice_lines.c.organization_id, invoices.c.id == invoice_lines.c.invoice_id
        )
        statement = self._scope.select(invoice_lines).join(invoices, of_note)
        statement = statement.where(invoices.c.corrects_invoice_id == invoice_id)
        return list((await self._scope.connection.execute(statement)).all())

    async def taxes(self, invoice_id: UUID) -> list[Row[Any]]:
        statement = (
            self._scope.select(invoice_taxes)
            .where(invoice_taxes.c.invoice_id == invoice_id)
            .order_by(invoice_taxes.c.position)
        )
        return list((await self._scope.connection.execute(statement)).all())

    async def customer(self) -> Customer:
        """The organization as it is named now."""
        statement = self._scope.select(organizations, organizations.c.name)
        return Customer(str((await self._scope.connection.execute(statement)).scalar_one()))

    async def next_number(self, series: str, kind: str) -> int:
        """The seller's next number of the series. Others wait for it until the end of the transaction, which takes it
        back if it fails: so there are no gaps."""
        counters = document_counters
        statement = upsert(counters).values(series=series, kind=kind, last_sequence=1)
        statement = statement.on_conflict_do_update(
            index_elements=["series", "kind"], set_={"last_sequence": counters.c.last_sequence + 1}
        )
        return int((await self._scope.connection.execute(statement.returning(counters.c.last_sequence))).scalar_one())

    async def insert(
        self, invoice: dict[str, object], lines: list[Line], taxes: list[TaxLine], ledger: dict[str, int]
    ) -> None:
        connection, scope = self._scope.connection, self.own
        await connection.execute(scope.insert(invoices, **invoice))
        rows = [
            {
                "invoice_id": invoice["id"],
                "position": position,
                **{name: getattr(line, name) for name in Line._fields},
            }
            for position, line in enumerate(lines)
        ]
        await connection.execute(scope.insert_all(invoice_lines), [scope.owned(row) for row in rows])
        for position, tax in enumerate(taxes):
            values = {name: getattr(tax, name) for name in TaxLine.__slots__}
            await connection.execute(scope.insert(invoice_taxes, invoice_id=invoice["id"], position=position, **values))
        for account, amount_micros in ledger.items():
            await connection.execute(
                scope.insert(
                    ledger_entries,
                    invoice_id=invoice["id"],
                    account=account,
                    amount_micros=amount_micros,
                    created_at=invoice["issued_at"],
                )
            )
