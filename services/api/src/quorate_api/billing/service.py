"""The open invoice, issued invoices, and the close of a month."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from quorate_api.billing import account, calculator
from quorate_api.billing.calculator import Line
from quorate_api.billing.repository import BillingRepository
from quorate_api.billing.schemas import Invoice, InvoiceHead, InvoiceLine
from quorate_api.database.ids import new_id
from quorate_api.database.scope import Scope
from quorate_api.database.work import Work
from quorate_api.errors import not_found
from quorate_api.http.pagination import Paging
from quorate_api.http.principal import Permission, Principal
from quorate_api.http.schemas import Page
from quorate_api.pricing import prices
from quorate_api.sla import service as sla
from quorate_api.sla.calculator import Attainment
from quorate_api.totals.repository import TotalsRepository
from quorate_api.usage.repository import UsageRepository


async def current(work: Work, principal: Principal) -> Invoice:
    """The invoice of the current month, as of now. A month that has ended and is not closed yet is not in it."""
    principal.require(Permission.BILLING)
    now = datetime.now(UTC)
    start, end = sla.month_bounds(None, now)
    owed = await account.read(work.scope, now)
    used = await TotalsRepository(work.scope).by_day(int(start.timestamp()))
    lines = account.open_lines(owed, used, start, now)
    return Invoice(
        id=None,
        kind="invoice",
        number=None,
        status="open",
        period_start=start,
        period_end=end,
        issued_at=None,
        currency=prices.CURRENCY,
        total_micros=sum(line.amount_micros for line in lines),
        corrects_invoice_id=None,
        lines=[_line(line) for line in lines],
    )


async def page(work: Work, principal: Principal, paging: Paging) -> Page[InvoiceHead]:
    principal.require(Permission.BILLING)
    rows = await BillingRepository(work.scope).page(paging.limit + 1, paging.after_id)
    more = len(rows) > paging.limit
    rows = rows[: paging.limit]
    cursor = paging.next_cursor(rows[-1].id.bytes) if more else None
    return Page(items=[InvoiceHead(**_head(row)) for row in rows], next_cursor=cursor)


async def get(work: Work, principal: Principal, invoice_id: UUID) -> Invoice:
    principal.require(Permission.BILLING)
    billing = BillingRepository(work.scope)
    row = await billing.get(invoice_id)
    if row is None:
        raise not_found("invoice")
    return Invoice(**_head(row), lines=[_line(line) for line in await billing.lines(invoice_id)])


async def close_months(scope: Scope, until: datetime) -> int:
    """Issue the missing documents of the months that ended by `until`. Returns their number.

    Idempotent: one close of an organization runs at a time, and a month with an invoice is skipped.
    """
    billing = BillingRepository(scope)
    await billing.lock()
    began = await billing.last_period_end() or await billing.first_group_at()
    if began is None:
        return 0
    issued = 0
    start = began.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    while (end := (start + timedelta(days=31)).replace(day=1)) <= until:
        issued += await _close(scope, start, end)
        start = end
    return issued


async def _close(scope: Scope, start: datetime, end: datetime) -> int:
    billing = BillingRepository(scope)
    if await billing.of_period("invoice", start) is not None:
        return 0
    owed = await account.read(scope, end)
    metered = await TotalsRepository(scope).metered(int(end.timestamp()))
    lines = account.lines_of(owed, start, end, metered, owed.billed)
    if not lines:
        return 0
    now = datetime.now(UTC)
    credits = await _credits(scope, lines, start, end, now)
    invoice_id = new_id()
    head: dict[str, object] = {
        **await _numbered("invoice", billing, now),
        "id": invoice_id,
        "period_start": start,
        "period_end": end,
        "currency": prices.CURRENCY,
        "total_micros": sum(line.amount_micros for line in lines),
        "corrects_invoice_id": None,
        "issued_at": now,
    }
    await billing.insert(head, lines, calculator.ledger(lines))
    if not credits:
        return 1
    note = head | {
        **await _numbered("credit_note", billing, now),
        "id": new_id(),
        "total_micros": sum(line.amount_micros for line in credits),
        "corrects_invoice_id": invoice_id,
    }
    await billing.insert(note, credits, calculator.ledger(credits))
    return 2


_PREFIXES = {"invoice": "INV", "credit_note": "CN"}


async def _numbered(kind: str, billing: BillingRepository, now: datetime) -> dict[str, object]:
    """The document's number, in the seller's series of the year."""
    series = f"{now:%Y}"
    sequence = await billing.next_number(series, kind)
    number = f"{_PREFIXES[kind]}-{series}-{sequence:06d}"
    return {"kind": kind, "series": series, "sequence": sequence, "number": number}


async def _credits(scope: Scope, lines: list[Line], start: datetime, end: datetime, now: datetime) -> list[Line]:
    """A credit for each missed clause. No customer has to ask for it."""
    credits: list[Line] = []
    usage = UsageRepository(scope)
    for row in await BillingRepository(scope).billable_groups(end):
        own = [line for line in lines if line.group_id == row.id]
        if not own:
            continue
        measured = await sla.measure(usage, row, start, end, now)
        missed = [
            (each.clause.name, each.credit_percent, _attained(each)) for each in measured.attainments if not each.met
        ]
        credits += calculator.credit_lines(own, missed)
    return credits


def _attained(attainment: Attainment) -> str:
    assert attainment.attained_ppm is not None, "a clause without minutes is met"
    return f"{attainment.attained_ppm / 10_000:.4f} % instead of {attainment.clause.target_ppm / 10_000:.2f} %"


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
        "total_micros": row.total_micros,
        "corrects_invoice_id": row.corrects_invoice_id,
    }


def _line(line: Line | Row[Any]) -> InvoiceLine:
    return InvoiceLine(**{name: getattr(line, name) for name in InvoiceLine.model_fields})
