"""Issued invoices for tests of their payment, without the month that leads to them."""

import itertools
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

from support.customer import Customer

_sequence = itertools.count(1)
_INSERT = (
    "INSERT INTO invoices (id, organization_id, kind, sequence, number, series, period_start, period_end, currency,"
    " total_micros, tax_micros, corrects_invoice_id, issued_at, due_at)"
    " VALUES (%(id)s, %(owner)s, %(kind)s, %(sequence)s, %(number)s, 'T', %(start)s, %(end)s, 'USD', %(total)s,"
    " %(total)s, %(corrects)s, %(issued_at)s, %(due_at)s)"
)


def issue(
    owner: psycopg.Connection,
    customer: Customer,
    total_micros: int,
    *,
    due_in: timedelta | None = timedelta(days=14),
    corrects: str | None = None,
) -> str:
    """An invoice, or the credit note that `corrects` one. `due_in`: None for one from before there were due dates."""
    invoice_id, sequence = str(uuid.uuid4()), next(_sequence)
    start = datetime(2000, 1, 1, tzinfo=UTC) + timedelta(days=31 * sequence)
    due_at = None if due_in is None or corrects else datetime.now(UTC) + due_in
    values: dict[str, Any] = {
        "id": invoice_id,
        "owner": customer.organization_id,
        "kind": "credit_note" if corrects else "invoice",
        "sequence": sequence,
        "number": f"{'CN' if corrects else 'INV'}-T-{sequence:06d}",
        "start": start,
        "end": start + timedelta(days=31),
        "total": total_micros,
        "corrects": corrects,
        "issued_at": min(datetime.now(UTC), due_at or datetime.now(UTC)) - timedelta(days=14),
        "due_at": due_at,
    }
    with owner.transaction():
        owner.execute(_INSERT, values)
        owner.execute(
            "INSERT INTO invoice_taxes VALUES (%s, %s, 0, 'VAT', 0, 0, %s)",
            (customer.organization_id, invoice_id, total_micros),
        )
    return invoice_id


async def payment(customer: Customer, invoice_id: str) -> dict[str, Any]:
    return dict((await customer.get(f"/v1/invoices/{invoice_id}"))["payment"])
