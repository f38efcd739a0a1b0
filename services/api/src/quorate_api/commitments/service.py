"""Commitments of the caller's organization."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Row

from quorate_api import limits
from quorate_api.access.permissions import Permission
from quorate_api.commitments import calculator
from quorate_api.commitments.repository import CommitmentRepository
from quorate_api.commitments.schemas import Commitment, Commitments, NewCommitment, Offer
from quorate_api.database.ids import new_id
from quorate_api.database.work import Work
from quorate_api.errors import invalid
from quorate_api.http.principal import Principal
from quorate_api.months.calendar import month_begin, month_end
from quorate_api.months.repository import MonthRepository
from quorate_api.pricing import prices


async def listed(work: Work, principal: Principal) -> Commitments:
    principal.require(Permission.BILLING)
    now = datetime.now(UTC)
    repository = CommitmentRepository(work.scope)
    return Commitments(
        items=[_commitment(row) for row in await repository.all_of()],
        offers=[Offer(months=months, discount_percent=percent) for months, percent in prices.at(now).commitments],
        currency=prices.CURRENCY,
        reserved_monthly_micros=await repository.reserved_hourly_micros() * prices.HOURS_PER_MONTH,
    )


async def make(work: Work, principal: Principal, asked: NewCommitment, *, repeatable: bool) -> Commitment:
    """`repeatable`: the request has an Idempotency-Key. Without one, a lost answer would tempt to commit twice."""
    principal.require(Permission.BILLING)
    principal.require_person()
    principal.require_confirmed()
    if not repeatable:
        raise invalid("Idempotency-Key", "Send one: a commitment that is made twice is owed twice.")
    now = datetime.now(UTC)
    offers = dict(prices.at(now).commitments)
    if asked.months not in offers:
        terms = " or ".join(str(months) for months in offers)
        raise invalid("months", f"Must be {terms}.")
    await MonthRepository(work.scope).lock()
    repository = CommitmentRepository(work.scope)
    if len(await repository.all_of()) >= limits.COMMITMENTS_MAX:
        raise invalid("monthly_micros", f"An organization makes at most {limits.COMMITMENTS_MAX} commitments.")
    start = end = month_end(month_begin(now))
    for _ in range(asked.months):
        end = month_end(end)
    made = calculator.Commitment(new_id(), asked.monthly_micros, asked.months, offers[asked.months], start, end)
    await repository.insert(made, created_at=now, created_by=principal.user_id)
    return _commitment((await repository.all_of())[0])


def _commitment(row: Row[Any]) -> Commitment:
    return Commitment(
        id=row.id,
        monthly_micros=row.monthly_micros,
        months=row.months,
        discount_percent=row.discount_percent,
        start=row.starts_at,
        end=row.ends_at,
        created_at=row.created_at,
    )
