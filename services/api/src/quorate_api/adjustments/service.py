"""Entering corrections. The worker adjusts closed months that they change."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from quorate_api import limits
from quorate_api.adjustments.adjust import lines_of
from quorate_api.adjustments.calculator import left_of
from quorate_api.adjustments.schemas import Correction, NewCorrection
from quorate_api.billing import account as accounts
from quorate_api.billing.repository import BillingRepository
from quorate_api.corrections.repository import OF_MINUTES, CorrectionRepository
from quorate_api.database.ids import new_id
from quorate_api.database.scope import Scope
from quorate_api.database.work import Work
from quorate_api.errors import Code, Problem, invalid, not_found
from quorate_api.groups.repository import GroupRepository
from quorate_api.http.idempotency import HEADER
from quorate_api.http.pagination import Paging
from quorate_api.http.repository import PrincipalRepository
from quorate_api.http.schemas import Page
from quorate_api.months.calendar import day_begin, month_begin, month_end
from quorate_api.months.repository import MonthRepository
from quorate_api.telemetry.windows import WINDOW_S
from quorate_api.totals.repository import TotalsRepository


async def enter(work: Work, group_id: UUID, asked: NewCorrection, author: str, *, repeatable: bool) -> Correction:
    """`repeatable`: the request has an Idempotency-Key. Without one, a lost answer would tempt to correct twice."""
    group = await _found(work, group_id)
    if not repeatable:
        raise invalid(HEADER.title(), "Send one: a correction that is entered twice counts twice.")
    months = MonthRepository(work.scope)
    await months.lock()
    now = datetime.now(UTC)
    closed_until = (await months.closed_until()).get(work.scope.organization_id)
    values: dict[str, object] = {"kind": asked.kind, "reason": asked.reason, "author": author, "created_at": now}
    if asked.kind in OF_MINUTES:
        start, end = _minutes(asked, group, now)
        values |= {"start_s": int(start.timestamp()), "end_s": int(end.timestamp())}
        changed = [month for month in _months(start, end) if closed_until is not None and month < closed_until]
    else:
        changed = await _usage(work.scope, asked, group, closed_until, now)
        values |= {"quantity": asked.quantity, "day": asked.day}
    # Made under the lock, so that ids are in the order in which corrections count.
    await CorrectionRepository(work.scope).insert(id=new_id(), group_id=group_id, **values)
    await months.note_corrected(group_id, changed)
    return _correction((await CorrectionRepository(work.scope).page(group_id, 1, None))[0])


async def page(work: Work, group_id: UUID, paging: Paging) -> Page[Correction]:
    await _found(work, group_id)
    rows = await CorrectionRepository(work.scope).page(group_id, paging.limit + 1, paging.after_id)
    rows, cursor = paging.cut(rows)
    return Page(items=[_correction(row) for row in rows], next_cursor=cursor)


async def _found(work: Work, group_id: UUID) -> Row[Any]:
    """The group, whoever has it. From here on the transaction sees that organization's rows."""
    owner = await PrincipalRepository(work.connection).organization_of(group_id)
    if owner is None:
        raise not_found("group")
    group = await GroupRepository(await work.enter(owner)).get(group_id)
    if group is None:
        raise not_found("group")
    return group


def _minutes(asked: NewCorrection, group: Row[Any], now: datetime) -> tuple[datetime, datetime]:
    start, end = (_minute(name, getattr(asked, name)) for name in ("start", "end"))
    if end > now:
        raise invalid("end", "Must not be in the future: minutes that are over can be declared bad.")
    if not start < end or (end - start).total_seconds() > limits.CORRECTION_SPAN_S_MAX:
        raise invalid("start", f"Must be before `end`, by at most {limits.CORRECTION_SPAN_S_MAX // 86_400} days.")
    stopped = group.delete_requested_at or now
    if group.active_at is None or end <= group.active_at or start >= stopped:
        raise invalid("start", f"The group's SLA was in force from {group.active_at} until {stopped}, and not then.")
    return start, end


def _minute(name: str, at: datetime) -> datetime:
    if at.tzinfo is None or not 2000 <= at.year <= 2200 or at.timestamp() % WINDOW_S:
        raise invalid(name, "Must be a whole minute in RFC 3339 with a time zone, as in 2026-11-20T12:00:00Z.")
    return at.astimezone(UTC)


def _months(start: datetime, end: datetime) -> list[datetime]:
    """The months that [start, end) touches."""
    found = [month_begin(start)]
    while (following := month_end(found[-1])) < end:
        found.append(following)
    return found


async def _usage(
    scope: Scope, asked: NewCorrection, group: Row[Any], closed_until: datetime | None, now: datetime
) -> list[datetime]:
    """Check a correction of use. Returns the closed month that is to be adjusted, if there is one."""
    assert asked.day is not None, "the schema wants it"
    assert asked.quantity is not None, "the schema wants it"
    if group.active_at is None or not group.active_at.astimezone(UTC).date() <= asked.day <= now.date():
        raise invalid("day", f"Must be a day from {group.active_at}, when the group became active, until today.")
    month = month_begin(day_begin(asked.day))
    if asked.quantity > 0:
        return []
    is_closed = closed_until is not None and month < closed_until
    if is_closed:
        left = await _left_of_closed(scope, group.id, asked.kind, month)
    else:
        left = await _left_of_open(scope, group.id, asked.kind, month, closed_until, now)
    if left + asked.quantity < 0:
        detail = (
            f"The invoice of {month:%Y-%m} has {left} of the group's {asked.kind}, and a correction takes off no more."
        )
        raise invalid(
            "quantity", f"{detail} Use that came late is on the invoice of a later month: name a day of that."
        )
    return [month] if is_closed else []


async def _left_of_closed(scope: Scope, group_id: UUID, kind: str, month: datetime) -> int:
    """The quantity on the month's invoice that no credit note has taken back, and no correction is about to."""
    billing = BillingRepository(scope)
    invoice = await billing.invoice_of(month)
    if invoice is None:
        return 0
    billed, credited = (
        [line for line in lines_of(rows) if line.group_id == group_id]
        for rows in (await billing.lines(invoice.id), await billing.credited(invoice.id))
    )
    waiting = (await CorrectionRepository(scope).usage()).get(group_id, [])
    return left_of(kind, billed, credited) + sum(
        each.quantity
        for each in waiting
        if each.kind == kind and each.month == month and each.quantity < 0 and not each.is_billed
    )


async def _left_of_open(
    scope: Scope, group_id: UUID, kind: str, month: datetime, closed_until: datetime | None, now: datetime
) -> int:
    """The quantity that the month's invoice will have at least.

    Late telemetry of an earlier month that is open, too, could still move use from this month to that one.
    """
    first = closed_until or await BillingRepository(scope).first_group_at()
    assert first is not None, "the group is active"
    if month_begin(first) < month:
        raise Problem(Code.MONTH_NOT_CLOSED)
    end = month_end(month)
    owed = await accounts.read(scope, min(now, end))
    used = await TotalsRepository(scope).by_day(int(month.timestamp()))
    basis = accounts.open_basis(owed, used, month)
    lines = accounts.lines_of(owed, month, end, used.before(int(end.timestamp())), basis)
    return sum(line.quantity for line in lines if line.group_id == group_id and line.kind == kind)


def _correction(row: Row[Any]) -> Correction:
    return Correction(
        id=row.id,
        kind=row.kind,
        quantity=row.quantity,
        day=row.day,
        start=None if row.start_s is None else datetime.fromtimestamp(row.start_s, UTC),
        end=None if row.end_s is None else datetime.fromtimestamp(row.end_s, UTC),
        reason=row.reason,
        author=row.author,
        created_at=row.created_at,
    )
