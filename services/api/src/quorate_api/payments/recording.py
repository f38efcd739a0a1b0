"""Writing of payment entries: by operators, and by a provider's events. Each is written once."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import structlog
from sqlalchemy import Row

from quorate_api.checkout.port import EventOdd, HostedPages, Provider, Receipt, SignatureWrong
from quorate_api.database.ids import new_id
from quorate_api.database.work import Work
from quorate_api.documents.amounts import MICROS_PER_CENT, cents_text
from quorate_api.errors import Code, FieldError, Problem, not_found
from quorate_api.events.catalogue import EventType, PaymentReceived
from quorate_api.events.repository import EventRepository
from quorate_api.payments.books import transfer
from quorate_api.payments.repository import Books, InvoiceFinder, PaymentRepository, read_books
from quorate_api.payments.schemas import EventAnswer, NewPaymentEntry, RecordedEntry
from quorate_api.payments.service import enter_owner, entry_of, existing, shown, stands

log = structlog.get_logger(__name__)


async def by_operator(
    work: Work, provider: Provider, operator: str, invoice_id: UUID, asked: NewPaymentEntry
) -> RecordedEntry:
    """Record what an operator says. The same reference counts once, until it is reversed."""
    await enter_owner(work, invoice_id)
    payments = PaymentRepository(work.scope)
    await payments.lock(invoice_id)
    invoice = await existing(work, invoice_id)
    books = await read_books(work.scope, [invoice_id])
    now = datetime.now(UTC)
    if asked.kind == "reversal":
        values = _reversal(books.entries.get(invoice_id, []), asked.reverses_id)
    else:
        values = _new(invoice, books, asked, now)
    row = await payments.insert(
        **values, id=new_id(), invoice_id=invoice_id, kind=asked.kind, reference=asked.reference,
        recorded_by=operator, at=now,
    )  # fmt: skip
    await _tell(work, row)
    log.info("payment entry", invoice_id=str(invoice_id), kind=asked.kind, by=operator)
    after = await read_books(work.scope, [invoice_id])
    return RecordedEntry(entry=entry_of(row), payment=shown(invoice, after, provider.name, now))


def _new(invoice: Row[Any], books: Books, asked: NewPaymentEntry, now: datetime) -> dict[str, object]:
    assert asked.kind != "reversal", "reversals copy their entry"
    assert asked.amount_micros is not None, "checked by the schema"
    entries = books.entries.get(invoice.id, [])
    same = ("manual", asked.kind, asked.reference)
    if any((entry.provider, entry.kind, entry.reference) == same for entry in _standing_entries(entries)):
        raise Problem(Code.PAYMENT_RECORDED)
    due = stands(invoice, books, now).due_micros
    if asked.amount_micros > due:
        text = f"{cents_text(due // MICROS_PER_CENT)} {invoice.currency}"
        raise Problem(
            Code.PAYMENT_EXCEEDS_DUE,
            f"Only {text} are due. Record {due} micros at most, and what is above for another invoice.",
            errors=[FieldError(field="amount_micros", message=f"Must be at most {due}.")],
        )
    debit, credit = transfer(asked.kind, "manual")
    return {
        "provider": "manual", "amount_micros": asked.amount_micros,
        "debit_account": debit, "credit_account": credit, "reverses_id": None,
    }  # fmt: skip


def _reversal(entries: list[Row[Any]], reverses_id: UUID | None) -> dict[str, object]:
    taken = next((entry for entry in entries if entry.id == reverses_id), None)
    if taken is None:
        raise not_found("entry of this invoice")
    if taken.kind == "reversal":
        errors = [FieldError(field="reverses_id", message="Names a reversal: record the payment again instead.")]
        raise Problem(Code.VALIDATION_FAILED, "A reversal cannot be reversed.", errors=errors)
    if taken not in _standing_entries(entries):
        raise Problem(Code.PAYMENT_RECORDED, "This entry is reversed already. Nothing was recorded.")
    return {
        "provider": taken.provider, "amount_micros": taken.amount_micros,
        "debit_account": taken.credit_account, "credit_account": taken.debit_account, "reverses_id": taken.id,
    }  # fmt: skip


def _standing_entries(entries: list[Row[Any]]) -> list[Row[Any]]:
    """Entries that are not reversed, without reversals."""
    reversed_ids = {entry.reverses_id for entry in entries}
    return [entry for entry in entries if entry.kind != "reversal" and entry.id not in reversed_ids]


async def by_event(work: Work, provider: HostedPages, body: bytes, signature: str) -> EventAnswer:
    """Record what a provider's event says. An event that comes again changes nothing."""
    try:
        receipt = provider.read(body, signature)
    except SignatureWrong as error:
        raise Problem(Code.SIGNATURE_INVALID) from error
    except EventOdd as error:
        log.error("an event of the payment provider does not follow its contract", error=str(error))
        raise Problem(Code.VALIDATION_FAILED, "The event tells of a payment, but not of which.") from error
    if receipt is None:
        return EventAnswer(outcome="ignored")
    owner = await InvoiceFinder(work.connection).owner(receipt.invoice_id)
    if owner is None:
        log.error("money came for an invoice that is not here", event_id=receipt.event_id)
        return EventAnswer(outcome="ignored")
    await work.enter(owner)
    return EventAnswer(outcome="recorded" if await _received(work, provider, receipt) else "repeated")


async def _received(work: Work, provider: HostedPages, receipt: Receipt) -> bool:
    payments = PaymentRepository(work.scope)
    await payments.lock(receipt.invoice_id)
    invoice = await existing(work, receipt.invoice_id)
    if invoice.currency != receipt.currency:
        log.error("money came in another currency", event_id=receipt.event_id, currency=receipt.currency)
        raise Problem(Code.VALIDATION_FAILED, f"The invoice is in {invoice.currency}, not in {receipt.currency}.")
    now = datetime.now(UTC)
    new = await payments.note_event(
        provider=provider.name, event_id=receipt.event_id, invoice_id=receipt.invoice_id, type=receipt.event_type,
        at=now,
    )  # fmt: skip
    if not new:
        return False
    await payments.end_checkout(receipt.invoice_id, receipt.attempt)
    entries = (await read_books(work.scope, [receipt.invoice_id])).entries.get(receipt.invoice_id, [])
    if any((entry.provider, entry.reference) == (provider.name, receipt.reference) for entry in entries):
        return False  # another event told of the same money
    debit, credit = transfer("payment", provider.name)
    row = await payments.insert(
        id=new_id(), invoice_id=receipt.invoice_id, kind="payment", provider=provider.name,
        reference=receipt.reference, amount_micros=receipt.cents * MICROS_PER_CENT, debit_account=debit,
        credit_account=credit, reverses_id=None, recorded_by=provider.name, at=now,
    )  # fmt: skip
    await _tell(work, row)
    log.info("payment entry", invoice_id=str(receipt.invoice_id), kind="payment", by=provider.name)
    return True


async def _tell(work: Work, entry: Row[Any]) -> None:
    if entry.kind != "payment":
        return
    told = PaymentReceived(**{name: getattr(entry, name) for name in PaymentReceived.model_fields})
    await EventRepository(work.scope).add(
        work.scope.organization_id, EventType.PAYMENT_RECEIVED, str(entry.id), told, entry.at
    )
