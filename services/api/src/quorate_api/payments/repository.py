"""Payment entries, checkouts, events and reminders. Entries, events and reminders are only added."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, func, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from quorate_api.database.ids import new_id
from quorate_api.database.scope import EveryOrganization, Scope
from quorate_api.database.tables import (
    invoices,
    payment_checkouts,
    payment_entries,
    payment_events,
    payment_reminders,
)
from quorate_api.payments.dunning import Remind

_INVOICES, _ENTRIES, _CHECKOUTS, _REMINDERS = (
    invoices.c,
    payment_entries.c,
    payment_checkouts.c,
    payment_reminders.c,
)


@dataclass(frozen=True, slots=True)
class Books:
    """The rows from which the standing of invoices is computed, by invoice. `credits`: totals of credit notes."""

    credits: Mapping[UUID, list[int]]
    entries: Mapping[UUID, list[Row[Any]]]
    reminders: Mapping[UUID, list[Row[Any]]]


async def read_books(scope: Scope | EveryOrganization, invoice_ids: Iterable[UUID]) -> Books:
    """Entries and reminders are in the order in which they came."""
    ids = list(invoice_ids)
    execute = scope.connection.execute
    credits: dict[UUID, list[int]] = defaultdict(list)
    notes = scope.select(invoices, _INVOICES.corrects_invoice_id, _INVOICES.total_micros)
    for invoice_id, total_micros in (await execute(notes.where(_INVOICES.corrects_invoice_id.in_(ids)))).all():
        credits[invoice_id].append(int(total_micros))
    entries: dict[UUID, list[Row[Any]]] = defaultdict(list)
    found = scope.select(payment_entries).where(_ENTRIES.invoice_id.in_(ids)).order_by(_ENTRIES.id)
    for row in (await execute(found)).all():
        entries[row.invoice_id].append(row)
    reminders: dict[UUID, list[Row[Any]]] = defaultdict(list)
    told = scope.select(payment_reminders).where(_REMINDERS.invoice_id.in_(ids)).order_by(_REMINDERS.id)
    for row in (await execute(told)).all():
        reminders[row.invoice_id].append(row)
    return Books(credits, entries, reminders)


class PaymentRepository:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def lock(self, invoice_id: UUID) -> None:
        """One change of the invoice's account at a time, until the end of the transaction."""
        key = func.hashtextextended(f"payment {invoice_id}", 0)
        await self._scope.connection.execute(select(func.pg_advisory_xact_lock(key)))

    async def invoice(self, invoice_id: UUID) -> Row[Any] | None:
        """An issued invoice. Credit notes are not paid."""
        statement = self._scope.select(invoices).where(_INVOICES.id == invoice_id, _INVOICES.kind == "invoice")
        return (await self._scope.connection.execute(statement)).one_or_none()

    async def page(self, invoice_id: UUID, limit: int, before: UUID | None) -> list[Row[Any]]:
        """Entries, newest first."""
        statement = self._scope.select(payment_entries).where(_ENTRIES.invoice_id == invoice_id)
        statement = statement.order_by(_ENTRIES.id.desc()).limit(limit)
        if before is not None:
            statement = statement.where(_ENTRIES.id < before)
        return list((await self._scope.connection.execute(statement)).all())

    async def insert(self, **values: object) -> Row[Any]:
        statement = self._scope.insert(payment_entries, **values).returning(payment_entries)
        stored: Row[Any] = (await self._scope.connection.execute(statement)).one()
        return stored

    async def note_event(self, **values: object) -> bool:
        """False: the event was noted before."""
        statement = self._scope.upsert(payment_events, **values).on_conflict_do_nothing()
        noted = await self._scope.connection.execute(statement.returning(payment_events.c.event_id))
        return noted.first() is not None

    async def last_checkout(self, invoice_id: UUID) -> Row[Any] | None:
        statement = self._scope.select(payment_checkouts).where(_CHECKOUTS.invoice_id == invoice_id)
        statement = statement.order_by(_CHECKOUTS.attempt.desc()).limit(1)
        return (await self._scope.connection.execute(statement)).one_or_none()

    async def start_checkout(self, **values: object) -> Row[Any]:
        statement = self._scope.insert(payment_checkouts, ended=False, **values).returning(payment_checkouts)
        started: Row[Any] = (await self._scope.connection.execute(statement)).one()
        return started

    async def store_page(self, invoice_id: UUID, attempt: int, session_id: str, url: str) -> bool:
        """False: the attempt has ended meanwhile, so nobody may be sent to its page."""
        statement = self._scope.update(payment_checkouts).where(
            _CHECKOUTS.invoice_id == invoice_id, _CHECKOUTS.attempt == attempt, _CHECKOUTS.ended.is_(False)
        )
        stored = statement.values(session_id=session_id, url=url).returning(_CHECKOUTS.attempt)
        return (await self._scope.connection.execute(stored)).first() is not None

    async def end_checkout(self, invoice_id: UUID, attempt: int) -> None:
        statement = self._scope.update(payment_checkouts).where(
            _CHECKOUTS.invoice_id == invoice_id, _CHECKOUTS.attempt == attempt
        )
        await self._scope.connection.execute(statement.values(ended=True))


class InvoiceFinder:
    """For operators and for a provider's events, which know no organization. The SQL functions called here go past
    row-level security, and tell only where an invoice is."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def owner(self, invoice_id: UUID) -> UUID | None:
        found: UUID | None = (await self._connection.execute(select(func.find_invoice_owner(invoice_id)))).scalar_one()
        return found

    async def numbered(self, number: str) -> list[Row[Any]]:
        """Usually one: the oldest numbers were unique for a customer only."""
        names = ("id", "organization_id", "number", "total_micros", "currency", "issued_at", "due_at")
        found = func.find_invoices(number).table_valued(*names)
        return list((await self._connection.execute(select(found))).all())


class DunningRepository:
    """Invoices of all organizations, for the worker."""

    def __init__(self, scope: EveryOrganization) -> None:
        self._scope = scope

    async def due(
        self, earliest: datetime, latest: datetime, after: tuple[datetime, UUID] | None, limit: int
    ) -> list[Row[Any]]:
        """Invoices that became due in that time, paid or not, in the order of it."""
        columns = (_INVOICES.id, _INVOICES.organization_id, _INVOICES.total_micros, _INVOICES.due_at)
        statement = self._scope.select(invoices, *columns).where(
            _INVOICES.kind == "invoice", _INVOICES.due_at >= earliest, _INVOICES.due_at <= latest
        )
        if after is not None:
            statement = statement.where(tuple_(_INVOICES.due_at, _INVOICES.id) > after)
        statement = statement.order_by(_INVOICES.due_at, _INVOICES.id).limit(limit)
        return list((await self._scope.connection.execute(statement)).all())

    async def books(self, invoice_ids: Iterable[UUID]) -> Books:
        return await read_books(self._scope, invoice_ids)

    async def record(self, reminders: list[Remind], now: datetime) -> list[Row[Any]]:
        """Returns those that are new. A stage that is told already stays as it is."""
        if not reminders:
            return []
        values = [{name: getattr(each, name) for name in Remind.__slots__} | {"id": new_id(), "at": now}
                  for each in reminders]  # fmt: skip
        statement = self._scope.upsert(payment_reminders).values(values).on_conflict_do_nothing()
        return list((await self._scope.connection.execute(statement.returning(payment_reminders))).all())
