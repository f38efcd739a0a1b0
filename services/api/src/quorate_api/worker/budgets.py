"""(g) Budgets: alerts for thresholds that this month's cost, or its forecast, has reached.

A pass reads organizations with budgets only, a batch of them by the same few statements. The key of an alert lets it
be recorded once, so that restarts and several workers repeat nothing.
"""

import asyncio
from collections import defaultdict
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import structlog
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from quorate_api import limits
from quorate_api.billing import account as accounts
from quorate_api.billing.account import Account
from quorate_api.billing.sums import by_owner
from quorate_api.budgets.evaluation import Alert, Budget, Totals, evaluate, is_spent
from quorate_api.budgets.repository import AlertRepository
from quorate_api.database.scope import EveryOrganization, SomeOrganizations
from quorate_api.events.catalogue import BudgetThresholdReached, EventType
from quorate_api.events.repository import EventRepository
from quorate_api.months.calendar import month_name
from quorate_api.sla.service import month_bounds
from quorate_api.spend.forecast import Month, forecast
from quorate_api.totals.days import DailyUse
from quorate_api.totals.repository import TotalsRepository
from quorate_api.worker.halves import Organizations, by_halves

log = structlog.get_logger(__name__)

REASON = "budgets of all organizations are evaluated alike"
Fired = dict[UUID, set[tuple[str, int]]]


async def evaluate_budgets(engine: AsyncEngine, now: datetime | None = None) -> int:
    """One pass. Returns the number of new alerts. Several workers may run it at once."""
    now = now or datetime.now(UTC)
    after: UUID | None = None
    recorded = 0
    while True:
        async with engine.begin() as connection:
            alerts = AlertRepository(EveryOrganization(connection, REASON))
            some = await alerts.organizations(after, limits.BUDGET_ORGANIZATIONS_MAX)
        if not some:
            return recorded
        recorded += await by_halves(tuple(some), lambda part: _evaluate(engine, part, now), "budgets")
        after = some[-1]


async def _evaluate(engine: AsyncEngine, some: Organizations, now: datetime) -> int:
    """Returns the number of new alerts."""
    async with engine.begin() as connection:
        recorded = await AlertRepository(EveryOrganization(connection, REASON)).record(
            await _due(connection, some, now), now
        )
        events = EventRepository(EveryOrganization(connection, REASON))
        for row in recorded:
            told = BudgetThresholdReached(**{name: getattr(row, name) for name in BudgetThresholdReached.model_fields})
            await events.add(row.organization_id, EventType.BUDGET_THRESHOLD_REACHED, str(row.id), told, now)
    for row in recorded:
        log.info("budget alert", budget_id=str(row.budget_id), kind=row.kind, percent=row.threshold_percent)
    return len(recorded)


async def _due(connection: AsyncConnection, organization_ids: tuple[UUID, ...], now: datetime) -> list[Alert]:
    alerts = AlertRepository(EveryOrganization(connection, REASON))
    some = SomeOrganizations(connection, organization_ids, REASON)
    fired = await alerts.fired(some, month_name(now))
    budgets: dict[UUID, list[Budget]] = defaultdict(list)
    for row in await alerts.budgets_of(some):
        budget = _budget(row)
        if not is_spent(budget, fired.get(budget.id, ())):
            budgets[budget.organization_id].append(budget)
    if not budgets:
        return []
    month = Month(*month_bounds(None, now), now)
    some = SomeOrganizations(connection, tuple(budgets), REASON)
    account = await accounts.read(some, now)
    used = await TotalsRepository(some).by_day(int(month.start.timestamp()))
    # Other tasks of the worker go on meanwhile.
    return await asyncio.to_thread(_alerts, account, used, month, budgets, fired)


def _alerts(
    account: Account, used: DailyUse, month: Month, budgets: dict[UUID, list[Budget]], fired: Fired
) -> list[Alert]:
    found: list[Alert] = []
    for organization_id, part in account.by_organization().items():
        try:
            totals = _totals(part, used.of_groups(row.id for row in part.groups), month)
        except Exception:  # one organization's error does not delay the others' alerts
            log.exception("budgets not evaluated", organization_id=str(organization_id))
            continue
        for budget in budgets.get(organization_id, ()):
            reached = totals.get(budget.project_id, Totals(0, 0))
            found += evaluate(budget, fired.get(budget.id, ()), reached, month.now)
    return found


def _totals(account: Account, used: DailyUse, month: Month) -> dict[UUID | None, Totals]:
    """Totals of each project, and of the organization: None."""
    seen = forecast(account, used, month)
    project_of = {row.id: row.project_id for row in account.groups}
    spent, expected = by_owner(seen.spent, project_of), by_owner(seen.expected, project_of)
    return {owner: Totals(spent.get(owner, 0), expected.get(owner, 0)) for owner in spent.keys() | expected.keys()}


def _budget(row: Row[Any]) -> Budget:
    return Budget(
        id=row.id,
        organization_id=row.organization_id,
        project_id=row.project_id,
        monthly_micros=row.monthly_micros,
        thresholds_percent=tuple(row.thresholds_percent),
        forecast_thresholds_percent=tuple(row.forecast_thresholds_percent),
    )
