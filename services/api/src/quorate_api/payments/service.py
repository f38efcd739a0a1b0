"""The account of an invoice as its customer sees it, and as operators do."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from quorate_api.access.permissions import Permission
from quorate_api.checkout.port import Manual, Provider, ProviderName
from quorate_api.database.work import Work
from quorate_api.errors import Code, Problem, not_found
from quorate_api.http.pagination import Paging
from quorate_api.http.principal import Principal
from quorate_api.http.schemas import Page
from quorate_api.payments import checkouts
from quorate_api.payments.repository import Books, InvoiceFinder, PaymentRepository, read_books
from quorate_api.payments.schemas import (
    Checkout,
    FoundInvoice,
    FoundInvoices,
    InvoiceAccount,
    Payment,
    PaymentEntry,
    Reminder,
)
from quorate_api.payments.standing import Owed, Standing, standing

NOT_SET = "How to pay is not set here (QUORATE_PAYMENT_INSTRUCTIONS). Ask the seller."


async def payments_of(work: Work, provider: ProviderName, rows: Sequence[Row[Any]]) -> dict[UUID, Payment]:
    """How far each of these documents is paid, by id. Credit notes are not paid."""
    owed = [row for row in rows if row.kind == "invoice"]
    if not owed:
        return {}
    books = await read_books(work.scope, [row.id for row in owed])
    now = datetime.now(UTC)
    return {row.id: shown(row, books, provider, now) for row in owed}


async def payment_of(work: Work, provider: ProviderName, row: Row[Any]) -> Payment:
    return (await payments_of(work, provider, [row]))[row.id]


def stands(row: Row[Any], books: Books, now: datetime) -> Standing:
    """`row`: an issued invoice."""
    return standing(
        Owed(row.total_micros, books.credits.get(row.id, []), row.due_at), books.entries.get(row.id, []), now
    )


def shown(row: Row[Any], books: Books, provider: ProviderName, now: datetime) -> Payment:
    found = stands(row, books, now)
    reminders = [
        Reminder(**{name: getattr(each, name) for name in Reminder.model_fields})
        for each in books.reminders.get(row.id, [])
    ]
    return Payment(
        **{name: getattr(found, name) for name in Standing.__slots__}, provider=provider, reminders=reminders
    )


def entry_of(row: Row[Any]) -> PaymentEntry:
    return PaymentEntry(**{name: getattr(row, name) for name in PaymentEntry.model_fields})


async def entries(work: Work, principal: Principal, invoice_id: UUID, paging: Paging) -> Page[PaymentEntry]:
    principal.require(Permission.BILLING)
    await existing(work, invoice_id)
    items, cursor = await _page(work, invoice_id, paging)
    return Page(items=items, next_cursor=cursor)


async def checkout(work: Work, principal: Principal, provider: Provider, origin: str, invoice_id: UUID) -> Checkout:
    """The way to pay what is due now."""
    principal.require(Permission.BILLING)
    payments = PaymentRepository(work.scope)
    await payments.lock(invoice_id)
    row = await existing(work, invoice_id)
    due = stands(row, await read_books(work.scope, [row.id]), datetime.now(UTC)).due_micros
    if due == 0:
        raise Problem(Code.NOTHING_DUE)
    answer = Checkout(
        provider=provider.name,
        amount_micros=due,
        currency=row.currency,
        reference=row.number,
        instructions=[],
        url=None,
        expires_at=None,
    )
    if isinstance(provider, Manual):
        return answer.model_copy(update={"instructions": list(provider.instructions) or [NOT_SET]})
    attempt = await checkouts.open_page(work, provider, row, due, origin)
    return answer.model_copy(update={"url": attempt.url, "expires_at": attempt.expires_at})


async def find(work: Work, number: str) -> FoundInvoices:
    """For operators: a transfer names an invoice by its number."""
    rows = await InvoiceFinder(work.connection).numbered(number)
    return FoundInvoices(
        items=[FoundInvoice(**{name: getattr(row, name) for name in FoundInvoice.model_fields}) for row in rows]
    )


async def enter_owner(work: Work, invoice_id: UUID) -> None:
    """For operators, who belong to no organization: from here on the transaction sees the invoice's."""
    owner = await InvoiceFinder(work.connection).owner(invoice_id)
    if owner is None:
        raise not_found("invoice")
    await work.enter(owner)


async def account(work: Work, provider: Provider, invoice_id: UUID, paging: Paging) -> InvoiceAccount:
    """For operators: the invoice's entries, and where it stands."""
    await enter_owner(work, invoice_id)
    row = await existing(work, invoice_id)
    items, cursor = await _page(work, invoice_id, paging)
    return InvoiceAccount(items=items, next_cursor=cursor, payment=await payment_of(work, provider.name, row))


async def existing(work: Work, invoice_id: UUID) -> Row[Any]:
    row = await PaymentRepository(work.scope).invoice(invoice_id)
    if row is None:
        raise not_found("invoice")
    return row


async def _page(work: Work, invoice_id: UUID, paging: Paging) -> tuple[list[PaymentEntry], str | None]:
    rows = await PaymentRepository(work.scope).page(invoice_id, paging.limit + 1, paging.after_id)
    rows, cursor = paging.cut(rows)
    return [entry_of(row) for row in rows], cursor
