"""The close of a month: an invoice of what is owed, and a credit note for what was missed."""

from datetime import UTC, datetime, timedelta

from quorate_api.billing import account, calculator
from quorate_api.billing.calculator import Line
from quorate_api.billing.issuer import Issuer, stored_customer
from quorate_api.billing.repository import BillingRepository
from quorate_api.database.ids import new_id
from quorate_api.database.scope import Scope
from quorate_api.pricing import prices
from quorate_api.sla import service as sla
from quorate_api.sla.calculator import Attainment
from quorate_api.tax import port
from quorate_api.totals.repository import TotalsRepository


async def close_months(scope: Scope, issuer: Issuer, until: datetime) -> int:
    """Issue the missing documents of the months that ended by `until`. Returns their number.

    Idempotent: one close of an organization runs at a time, and a month that was closed is skipped.
    """
    billing = BillingRepository(scope)
    await billing.lock()
    closed_until = (await billing.closed_until()).get(scope.organization_id)
    began = closed_until or await billing.first_group_at()
    if began is None:
        return 0
    issued = 0
    start = month_begin(began)
    while (end := (start + timedelta(days=31)).replace(day=1)) <= until:
        issued += await _close(scope, issuer, start, end)
        start = end
    await billing.set_closed_until(start)
    return issued


def month_begin(at: datetime) -> datetime:
    """The begin of its month (UTC)."""
    return at.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


async def _close(scope: Scope, issuer: Issuer, start: datetime, end: datetime) -> int:
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
    customer = await billing.customer()
    taxes = issuer.tax(issuer.seller, customer, lines)
    subtotal, tax = (sum(each.amount_micros for each in some) for some in (lines, taxes))
    invoice_id = new_id()
    head: dict[str, object] = {
        **await _numbered("invoice", billing, now),
        "id": invoice_id,
        "period_start": start,
        "period_end": end,
        "currency": prices.CURRENCY,
        "total_micros": subtotal + tax,
        "tax_micros": tax,
        "corrects_invoice_id": None,
        "issued_at": now,
        "due_at": issuer.due_at(now),
        "seller": issuer.stored_seller(),
        "customer": stored_customer(customer),
    }
    await billing.insert(head, lines, taxes, calculator.ledger(lines, taxes))
    if not credits:
        return 1
    credit = sum(line.amount_micros for line in credits)
    returned = port.credited(taxes, subtotal, credit)
    tax = sum(each.amount_micros for each in returned)
    note = head | {
        **await _numbered("credit_note", billing, now),
        "id": new_id(),
        "total_micros": credit + tax,
        "tax_micros": tax,
        "corrects_invoice_id": invoice_id,
        "due_at": None,
    }
    await billing.insert(note, credits, returned, calculator.ledger(credits, returned))
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
    for row in await BillingRepository(scope).billable_groups(end):
        own = [line for line in lines if line.group_id == row.id]
        if not own:
            continue
        measured = await sla.measure(scope, row, start, end, now)
        missed = [
            (each.clause.name, each.credit_percent, _attained(each)) for each in measured.attainments if not each.met
        ]
        credits += calculator.credit_lines(own, missed)
    return credits


def _attained(attainment: Attainment) -> str:
    assert attainment.attained_ppm is not None, "a clause without minutes is met"
    return f"{attainment.attained_ppm / 10_000:.4f} % instead of {attainment.clause.target_ppm / 10_000:.2f} %"
