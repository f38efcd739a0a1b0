"""The open invoice, issued invoices and credit notes, and each as a document."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from pydantic import TypeAdapter
from sqlalchemy import Row

from quorate_api.access.permissions import Permission
from quorate_api.billing import account
from quorate_api.billing.calculator import Line
from quorate_api.billing.issuer import Issuer, customer_of
from quorate_api.billing.repository import BillingRepository
from quorate_api.billing.schemas import Invoice, InvoiceHead, InvoiceLine, InvoiceTax
from quorate_api.checkout.port import ProviderName
from quorate_api.database.work import Work
from quorate_api.documents.document import Document, DocumentLine
from quorate_api.errors import not_found
from quorate_api.http.pagination import Paging
from quorate_api.http.principal import Principal
from quorate_api.http.schemas import Page
from quorate_api.payments import service as payments
from quorate_api.pricing import prices
from quorate_api.sla import service as sla
from quorate_api.tax.port import TaxLine
from quorate_api.totals.repository import TotalsRepository

_INVOICE_LINES = TypeAdapter(list[InvoiceLine])  # a large customer has thousands


async def current(work: Work, principal: Principal, issuer: Issuer) -> Invoice:
    """The invoice of the current month, as of now. A month that has ended and is not closed yet is not in it."""
    principal.require(Permission.BILLING)
    now = datetime.now(UTC)
    billing = BillingRepository(work.scope)
    start, end = sla.month_bounds(None, now)
    owed = await account.read(work.scope, now)
    used = await TotalsRepository(work.scope).before_and_now(int(start.timestamp()))
    lines = account.open_lines(owed, used, start, now)
    taxes = issuer.tax(issuer.seller, await billing.customer(), lines)
    subtotal, tax = (sum(each.amount_micros for each in some) for some in (lines, taxes))
    return Invoice(
        id=None,
        kind="invoice",
        number=None,
        status="open",
        period_start=start,
        period_end=end,
        issued_at=None,
        currency=prices.CURRENCY,
        subtotal_micros=subtotal,
        tax_micros=tax,
        total_micros=subtotal + tax,
        corrects_invoice_id=None,
        payment=None,
        lines=_lines(lines),
        taxes=_taxes(taxes),
    )


async def page(work: Work, principal: Principal, provider: ProviderName, paging: Paging) -> Page[InvoiceHead]:
    principal.require(Permission.BILLING)
    rows = await BillingRepository(work.scope).page(paging.limit + 1, paging.after_id)
    rows, cursor = paging.cut(rows)
    paid = await payments.payments_of(work, provider, rows)
    return Page(items=[InvoiceHead(**_head(row), payment=paid.get(row.id)) for row in rows], next_cursor=cursor)


async def get(work: Work, principal: Principal, provider: ProviderName, invoice_id: UUID) -> Invoice:
    principal.require(Permission.BILLING)
    row, billing = await _found(work, invoice_id), BillingRepository(work.scope)
    lines, taxes = await billing.lines(row.id), await billing.taxes(row.id)
    paid = await payments.payments_of(work, provider, [row])
    return Invoice(**_head(row), payment=paid.get(row.id), lines=_lines(lines), taxes=_taxes(taxes))


async def document(work: Work, principal: Principal, issuer: Issuer, invoice_id: UUID) -> Document:
    """An issued invoice or credit note, with the parties as they were then."""
    principal.require(Permission.BILLING)
    row = await _found(work, invoice_id)
    billing = BillingRepository(work.scope)
    corrected = None if row.corrects_invoice_id is None else await billing.get(row.corrects_invoice_id)
    return Document(
        kind=row.kind,
        number=row.number,
        corrects_number=None if corrected is None else corrected.number,
        period_start=row.period_start,
        period_end=row.period_end,
        issued_at=row.issued_at,
        due_at=row.due_at,
        made_at=row.issued_at,
        currency=row.currency,
        seller=issuer.seller_of(row.seller),
        customer=customer_of(row.customer, await billing.customer()),
        lines=_document_lines(await billing.lines(row.id)),
        taxes=_tax_lines(await billing.taxes(row.id)),
    )


async def current_document(work: Work, principal: Principal, issuer: Issuer) -> Document:
    """The open invoice as of now: a draft."""
    open_invoice = await current(work, principal, issuer)
    return Document(
        kind=open_invoice.kind,
        number=None,
        corrects_number=None,
        period_start=open_invoice.period_start,
        period_end=open_invoice.period_end,
        issued_at=None,
        due_at=None,
        made_at=datetime.now(UTC),
        currency=open_invoice.currency,
        seller=issuer.seller,
        customer=await BillingRepository(work.scope).customer(),
        lines=_document_lines(open_invoice.lines),
        taxes=_tax_lines(open_invoice.taxes),
    )


async def _found(work: Work, invoice_id: UUID) -> Row[Any]:
    row = await BillingRepository(work.scope).get(invoice_id)
    if row is None:
        raise not_found("invoice")
    return row


def _head(row: Row[Any]) -> dict[str, Any]:
    return {
        "id": row.id,
        "kind": row.kind,
        "number": row.number,
        "status": "issued",
        "period_start": row.period_start,
        "period_end": row.period_end,
        "issued_at": row.issued_at,
        "currency": row.currency,
        "subtotal_micros": row.total_micros - row.tax_micros,
        "tax_micros": row.tax_micros,
        "total_micros": row.total_micros,
        "corrects_invoice_id": row.corrects_invoice_id,
    }


def _lines(lines: Sequence[Line | Row[Any]]) -> list[InvoiceLine]:
    return _INVOICE_LINES.validate_python(lines, from_attributes=True)


def _taxes(taxes: Sequence[TaxLine | Row[Any]]) -> list[InvoiceTax]:
    return [InvoiceTax(**{name: getattr(tax, name) for name in InvoiceTax.model_fields}) for tax in taxes]


def _document_lines(lines: Sequence[InvoiceLine | Row[Any]]) -> list[DocumentLine]:
    return [DocumentLine(**{name: getattr(line, name) for name in DocumentLine.__slots__}) for line in lines]


def _tax_lines(taxes: Sequence[InvoiceTax | Row[Any]]) -> list[TaxLine]:
    return [TaxLine(**{name: getattr(tax, name) for name in TaxLine.__slots__}) for tax in taxes]
