"""The adjustment of closed months that have changed since: a further credit note for what is owed by now."""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from quorate_api.adjustments.calculator import further_credits
from quorate_api.billing.calculator import Line
from quorate_api.billing.close import missed_clauses
from quorate_api.billing.issuer import Issuer
from quorate_api.billing.issuing import Billed, Issuing
from quorate_api.billing.repository import BillingRepository
from quorate_api.corrections.repository import CorrectionRepository
from quorate_api.database.scope import Scope
from quorate_api.groups.repository import GroupRepository
from quorate_api.months.repository import MonthRepository
from quorate_api.tax.port import TaxLine


async def adjust_months(scope: Scope, issuer: Issuer) -> int:
    """Issue credit notes for closed months that have changed. Returns their number.

    Idempotent: the difference is to what all documents credit, one adjustment of an organization runs at a time, and
    the notes of changes end in the same transaction.
    """
    months = MonthRepository(scope)
    await months.lock()
    issued = 0
    for start, group_ids in (await months.take_changed()).items():
        issued += await _adjust(scope, issuer, start, group_ids)
    return issued


async def _adjust(scope: Scope, issuer: Issuer, start: datetime, group_ids: Collection[UUID]) -> int:
    billing = BillingRepository(scope)
    invoice = await billing.invoice_of(start)
    if invoice is None:  # nothing was owed in the month, so nothing of it can be credited
        return 0
    now = datetime.now(UTC)
    billed, credited = lines_of(await billing.lines(invoice.id)), lines_of(await billing.credited(invoice.id))
    corrections = await CorrectionRepository(scope).usage()
    credits: list[Line] = []
    for group in sorted(await GroupRepository(scope).get_many(group_ids), key=lambda row: row.id):
        lowering = [
            each
            for each in corrections.get(group.id, ())
            if not each.is_billed and each.month == start and each.quantity < 0
        ]
        missed = await missed_clauses(scope, group, invoice.period_start, invoice.period_end, now)
        credits += further_credits(_of(billed, group), _of(credited, group), lowering, missed)
    if not credits:
        return 0
    taxes = [_tax(row) for row in await billing.taxes(invoice.id)]
    corrected = Billed(
        invoice.id, invoice.period_start, invoice.period_end, invoice.total_micros - invoice.tax_micros, taxes
    )
    credited_micros = sum(line.amount_micros for line in credited)
    await Issuing(billing, issuer, now).credit_note(corrected, credits, credited_micros)
    return 1


def lines_of(rows: Collection[Row[Any]]) -> list[Line]:
    return [Line(**{name: getattr(row, name) for name in Line._fields}) for row in rows]


def _of(lines: Collection[Line], group: Row[Any]) -> list[Line]:
    return [line for line in lines if line.group_id == group.id]


def _tax(row: Row[Any]) -> TaxLine:
    return TaxLine(**{name: getattr(row, name) for name in TaxLine.__slots__})
