"""Invoices and credit notes as they are issued: numbered, taxed, with the parties' names, and in the books."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from quorate_api.billing import calculator
from quorate_api.billing.calculator import Line
from quorate_api.billing.issuer import Issuer, stored_customer
from quorate_api.billing.repository import BillingRepository
from quorate_api.database.ids import new_id
from quorate_api.events.catalogue import DocumentIssued, EventType
from quorate_api.events.repository import EventRepository
from quorate_api.pricing import prices
from quorate_api.tax import port
from quorate_api.tax.port import TaxLine

_PREFIXES = {"invoice": "INV", "credit_note": "CN"}


@dataclass(frozen=True, slots=True)
class Billed:
    """An invoice, as far as its credit notes need it."""

    id: UUID
    period_start: datetime
    period_end: datetime
    subtotal_micros: int
    taxes: list[TaxLine]


class Issuing:
    """Documents of one organization. The caller holds its lock (`months`)."""

    def __init__(self, billing: BillingRepository, issuer: Issuer, now: datetime) -> None:
        self._billing = billing
        self._issuer = issuer
        self._now = now

    async def invoice(self, start: datetime, end: datetime, lines: list[Line]) -> Billed:
        taxes = self._issuer.tax(self._issuer.seller, await self._billing.customer(), lines)
        invoice = Billed(new_id(), start, end, _sum(lines), taxes)
        await self._insert("invoice", invoice.id, invoice, lines, taxes)
        return invoice

    async def credit_note(self, invoice: Billed, lines: list[Line], credited_micros: int = 0) -> None:
        """Credit `lines` of the invoice. `credited_micros`: what its earlier notes credited, at most 0."""
        taxes = port.credited(invoice.taxes, invoice.subtotal_micros, _sum(lines), credited_micros)
        await self._insert("credit_note", new_id(), invoice, lines, taxes)

    async def _insert(
        self, kind: str, document_id: UUID, invoice: Billed, lines: list[Line], taxes: list[TaxLine]
    ) -> None:
        tax_micros = _sum(taxes)
        customer = stored_customer(await self._billing.customer())
        head: dict[str, Any] = {
            **await self._numbered(kind),  # last: other organizations' documents wait for it
            "id": document_id,
            "period_start": invoice.period_start,
            "period_end": invoice.period_end,
            "currency": prices.CURRENCY,
            "total_micros": _sum(lines) + tax_micros,
            "tax_micros": tax_micros,
            "corrects_invoice_id": None if kind == "invoice" else invoice.id,
            "issued_at": self._now,
            "due_at": self._issuer.due_at(self._now) if kind == "invoice" else None,
            "seller": self._issuer.stored_seller(),
            "customer": customer,
        }
        await self._billing.insert(head, lines, taxes, calculator.ledger(lines, taxes))
        await self._tell(head)

    async def _tell(self, head: dict[str, Any]) -> None:
        names = {"number", "period_start", "period_end", "currency", "total_micros", "due_at", "corrects_invoice_id"}
        told = DocumentIssued(invoice_id=head["id"], **{name: head[name] for name in names})
        kind = EventType.INVOICE_ISSUED if head["kind"] == "invoice" else EventType.CREDIT_NOTE_ISSUED
        scope = self._billing.own
        await EventRepository(scope).add(scope.organization_id, kind, str(head["id"]), told, self._now)

    async def _numbered(self, kind: str) -> dict[str, object]:
        """The document's number, in the seller's series of the year."""
        series = f"{self._now:%Y}"
        sequence = await self._billing.next_number(series, kind)
        number = f"{_PREFIXES[kind]}-{series}-{sequence:06d}"
        return {"kind": kind, "series": series, "sequence": sequence, "number": number}


def _sum(lines: list[Line] | list[TaxLine]) -> int:
    return sum(line.amount_micros for line in lines)
