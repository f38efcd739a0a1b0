"""Spend of the caller's organization: this month, its forecast, its days, and the month before."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from quorate_api import limits
from quorate_api.access.permissions import Permission
from quorate_api.billing import account as accounts
from quorate_api.billing import sums
from quorate_api.billing.account import Account
from quorate_api.billing.calculator import Line
from quorate_api.billing.repository import BillingRepository
from quorate_api.budgets.repository import BudgetRepository
from quorate_api.database.scope import Scope
from quorate_api.database.work import Work
from quorate_api.http.principal import Principal
from quorate_api.pricing import prices
from quorate_api.sla.service import month_bounds
from quorate_api.spend import exposition, forecast
from quorate_api.spend.forecast import Forecast, Month, Spread
from quorate_api.spend.repository import SpendRepository
from quorate_api.spend.schemas import (
    ForecastBasis,
    GroupSpend,
    KindMicros,
    OtherGroups,
    PreviousMonth,
    ProjectSpend,
    Spend,
    SpendDay,
    SpendDays,
    SpendForecast,
)
from quorate_api.totals.days import DailyUse
from quorate_api.totals.repository import TotalsRepository


@dataclass(frozen=True, slots=True)
class Before:
    """The month before: its invoice, or what that would be."""

    start: datetime
    by_group: Mapping[UUID, Mapping[str, int]]
    by_project: Mapping[UUID, int]  # projects' own lines
    by_kind: Mapping[str, int]
    invoice_id: UUID | None


async def spend(work: Work, principal: Principal) -> Spend:
    principal.require(Permission.BILLING)
    month = _month(None, datetime.now(UTC))
    earlier_start = (month.start - timedelta(days=1)).replace(day=1)
    account, used = await _read(work.scope, month.now, earlier_start)
    # A thousand groups take a tenth of a second. Other requests go on meanwhile.
    seen = await asyncio.to_thread(forecast.forecast, account, used, month)
    expected_micros = sums.total_micros(seen.expected)
    spread = await asyncio.to_thread(forecast.spread, account, used, month, expected_micros)
    before = await _before(work.scope, account, used, earlier_start, month.start)
    names = await SpendRepository(work.scope).project_names()
    listed, others = _by_group(account, seen, before)
    return Spend(
        month=_name(month.start),
        period_start=month.start,
        period_end=month.end,
        as_of=month.now,
        currency=prices.CURRENCY,
        spent_micros=sums.total_micros(seen.spent),
        by_kind=KindMicros.of(sums.by_kind(seen.spent)),
        forecast=_forecast(seen, spread, month),
        previous=_previous(before),
        projects=_by_project(account, seen, before, names),
        groups=listed,
        other_groups=others,
    )


async def days(work: Work, principal: Principal, name: str | None) -> SpendDays:
    principal.require(Permission.BILLING)
    now = datetime.now(UTC)
    month = _month(name, now)
    account, used = await _read(work.scope, now, month.start)
    if month.end > now:
        basis = accounts.open_basis(account, used, month.start)
    else:  # an invoice bills what came late; a past day costs what was used on it
        basis = accounts.closed_basis(account, used, month.start)
    found = await asyncio.to_thread(forecast.days, account, used, month, basis)
    return SpendDays(
        month=_name(month.start),
        currency=prices.CURRENCY,
        days=[
            SpendDay(
                day=(month.start + timedelta(days=number)).date(),
                total_micros=sum(kinds.values()),
                by_kind=KindMicros.of(kinds),
            )
            for number, kinds in enumerate(found)
        ],
    )


async def metrics(work: Work, principal: Principal) -> str:
    principal.require(Permission.BILLING)
    month = _month(None, datetime.now(UTC))
    account, used = await _read(work.scope, month.now, month.start)
    seen = await asyncio.to_thread(forecast.forecast, account, used, month)
    names = await SpendRepository(work.scope).project_names()
    project_of = {row.id: row.project_id for row in account.groups}
    spent = exposition.series(
        (
            (_project_name(line, project_of, names), line.group_name, line.kind),
            line.amount_micros,
        )
        for line in seen.spent
    )
    budgets = {
        "" if row.project_id is None else names[row.project_id]: int(row.monthly_micros)
        for row in await BudgetRepository(work.scope).all_of()
        if row.project_id is None or principal.sees_project(row.project_id)
    }
    return exposition.render(spent, sums.total_micros(seen.expected), budgets)


def _project_name(line: Line, project_of: Mapping[UUID, UUID], names: Mapping[UUID, str]) -> str:
    project_id = sums.project_of_line(line, project_of)
    return "" if project_id is None else names[project_id]


async def _read(scope: Scope, now: datetime, from_: datetime) -> tuple[Account, DailyUse]:
    account = await accounts.read(scope, now)
    return account, await TotalsRepository(scope).by_day(int(from_.timestamp()))


async def _before(scope: Scope, account: Account, used: DailyUse, start: datetime, end: datetime) -> Before | None:
    """None if nothing was owed in [start, end), a month."""
    billing = BillingRepository(scope)
    issued = await billing.invoice_of(start)
    if issued is not None:
        rows = await billing.lines(issued.id)
        return Before(start, sums.by_group(rows), sums.by_project(rows), sums.by_kind(rows), issued.id)
    if account.is_closed(scope.organization_id, end):
        return None
    metered = used.before(int(end.timestamp()))
    lines = accounts.lines_of(account, start, end, metered, accounts.open_basis(account, used, start))
    if not lines:
        return None
    return Before(start, sums.by_group(lines), sums.by_project(lines), sums.by_kind(lines), None)


def _month(name: str | None, now: datetime) -> Month:
    start, end = month_bounds(name, now)
    return Month(start, end, now)


def _name(start: datetime) -> str:
    return f"{start:%Y-%m}"


def _forecast(seen: Forecast, spread: Spread, month: Month) -> SpendForecast:
    return SpendForecast(
        total_micros=sums.total_micros(seen.expected),
        low_micros=spread.low_micros,
        high_micros=spread.high_micros,
        by_kind=KindMicros.of(sums.by_kind(seen.expected)),
        basis=ForecastBasis(
            observed_from=datetime.fromtimestamp(month.since_s, UTC),
            observed_s=month.observed_s(),
            whole_days=spread.whole_days,
            left_s=month.left_s,
        ),
    )


def _previous(before: Before | None) -> PreviousMonth | None:
    if before is None:
        return None
    return PreviousMonth(
        month=_name(before.start),
        total_micros=sum(before.by_kind.values()),
        by_kind=KindMicros.of(before.by_kind),
        status="open" if before.invoice_id is None else "issued",
        invoice_id=before.invoice_id,
    )


def _by_group(account: Account, seen: Forecast, before: Before | None) -> tuple[list[GroupSpend], OtherGroups]:
    """Groups that cost something in one of the months, the dearest first, and the sum of those behind the bound."""
    spent, expected = sums.by_group(seen.spent), sums.by_group(seen.expected)
    earlier = before.by_group if before else {}
    found = [
        GroupSpend(
            group_id=row.id,
            group_name=row.name,
            project_id=row.project_id,
            spent_micros=sum(spent.get(row.id, {}).values()),
            by_kind=KindMicros.of(spent.get(row.id, {})),
            forecast_micros=sum(expected.get(row.id, {}).values()),
            previous_micros=sum(earlier.get(row.id, {}).values()),
        )
        for row in account.groups
        if row.id in spent or row.id in expected or row.id in earlier
    ]
    found.sort(key=lambda group: (-group.forecast_micros, group.group_name, group.group_id))
    rest = found[limits.SPEND_GROUPS_MAX :]
    others = OtherGroups(
        groups=len(rest),
        spent_micros=sum(group.spent_micros for group in rest),
        forecast_micros=sum(group.forecast_micros for group in rest),
        previous_micros=sum(group.previous_micros for group in rest),
    )
    return found[: limits.SPEND_GROUPS_MAX], others


def _by_project(
    account: Account, seen: Forecast, before: Before | None, names: Mapping[UUID, str]
) -> list[ProjectSpend]:
    project_of = {row.id: row.project_id for row in account.groups}
    totals: dict[UUID, list[int]] = {}
    parts = (sums.by_group(seen.spent), sums.by_group(seen.expected), before.by_group if before else {})
    for place, part in enumerate(parts):
        for group_id, kinds in part.items():
            totals.setdefault(project_of[group_id], [0, 0, 0])[place] += sum(kinds.values())
    own = (sums.by_project(seen.spent), sums.by_project(seen.expected), before.by_project if before else {})
    for place, amounts in enumerate(own):
        for project_id, micros in amounts.items():
            totals.setdefault(project_id, [0, 0, 0])[place] += micros
    found = [
        ProjectSpend(
            project_id=project_id,
            project_name=names[project_id],
            spent_micros=spent,
            forecast_micros=expected,
            previous_micros=earlier,
        )
        for project_id, (spent, expected, earlier) in totals.items()
    ]
    return sorted(found, key=lambda project: (-project.forecast_micros, project.project_name, project.project_id))
