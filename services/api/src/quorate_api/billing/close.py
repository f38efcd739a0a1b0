"""The close of a month: an invoice of what is owed, and a credit note for what was missed."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Row

from quorate_api.billing import account, calculator
from quorate_api.billing.account import Basis
from quorate_api.billing.calculator import Line, Missed
from quorate_api.billing.issuer import Issuer
from quorate_api.billing.issuing import Issuing
from quorate_api.billing.repository import BillingRepository
from quorate_api.commitments.repository import CommitmentRepository
from quorate_api.database.scope import Scope
from quorate_api.guaranteed.repository import GuaranteeRepository
from quorate_api.months.calendar import month_begin, month_end
from quorate_api.months.repository import MonthRepository
from quorate_api.sla import service as sla
from quorate_api.sla.calculator import Attainment
from quorate_api.totals.repository import TotalsRepository


async def close_months(scope: Scope, issuer: Issuer, until: datetime) -> int:
    """Issue the missing documents of the months that ended by `until`. Returns their number.

    Idempotent: one close of an organization runs at a time, and a month that was closed is skipped.
    """
    months = MonthRepository(scope)
    await months.lock()
    closed_until = (await months.closed_until()).get(scope.organization_id)
    began = closed_until or await _first_owed_at(scope)
    if began is None:
        return 0
    issued = 0
    start = month_begin(began)
    while (end := month_end(start)) <= until:
        issued += await _close(scope, issuer, start, end)
        start = end
    await months.set_closed_until(start)
    return issued


async def _first_owed_at(scope: Scope) -> datetime | None:
    """The time from which on something may be owed. None: at no time."""
    begins = (
        await BillingRepository(scope).first_group_at(),
        await CommitmentRepository(scope).first_at(),
        await GuaranteeRepository(scope).first_at(),
    )
    return min((begin for begin in begins if begin is not None), default=None)


async def missed_clauses(scope: Scope, group: Row[Any], start: datetime, end: datetime, now: datetime) -> list[Missed]:
    """Clauses that the group's SLA missed in the month, as they are judged now."""
    measured = await sla.measure(scope, group, start, end, now)
    return [
        Missed(each.clause.name, each.credit_percent, _attained(each)) for each in measured.attainments if not each.met
    ]


async def _close(scope: Scope, issuer: Issuer, start: datetime, end: datetime) -> int:
    billing = BillingRepository(scope)
    if await billing.invoice_of(start) is not None:
        return 0
    owed = await account.read(scope, end)
    metered = await TotalsRepository(scope).metered(int(end.timestamp()))
    basis = Basis(owed.billed, account.corrections_of_invoice(owed, start))
    lines = account.lines_of(owed, start, end, metered, basis)
    if not lines:
        return 0
    now = datetime.now(UTC)
    credits = await _credits(scope, lines, start, end, now)
    issuing = Issuing(billing, issuer, now)
    invoice = await issuing.invoice(start, end, lines)
    if not credits:
        return 1
    await issuing.credit_note(invoice, credits)
    return 2


async def _credits(scope: Scope, lines: list[Line], start: datetime, end: datetime, now: datetime) -> list[Line]:
    """A credit for each missed clause. No customer has to ask for it."""
    credits: list[Line] = []
    for row in await BillingRepository(scope).billable_groups(end):
        own = [line for line in lines if line.group_id == row.id]
        if own:
            credits += calculator.credit_lines(own, await missed_clauses(scope, row, start, end, now))
    return credits


def _attained(attainment: Attainment) -> str:
    assert attainment.attained_ppm is not None, "a clause without minutes is met"
    return f"{attainment.attained_ppm / 10_000:.4f} % instead of {attainment.clause.target_ppm / 10_000:.2f} %"
