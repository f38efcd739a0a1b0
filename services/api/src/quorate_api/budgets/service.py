"""Budgets of the caller's organization, and their visibility to the caller."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from quorate_api.access.permissions import Permission
from quorate_api.budgets.repository import BudgetRepository
from quorate_api.budgets.schemas import Budget, BudgetAlert, CapInForce, NewBudget
from quorate_api.caps import service as caps
from quorate_api.caps.repository import CapRepository
from quorate_api.database.ids import new_id
from quorate_api.database.work import Work
from quorate_api.errors import Code, FieldError, Problem, not_found
from quorate_api.http.pagination import Paging
from quorate_api.http.principal import Principal
from quorate_api.http.schemas import Page
from quorate_api.months.calendar import month_name
from quorate_api.pricing import prices
from quorate_api.projects import service as projects
from quorate_api.quotas import service as quotas

_SETTINGS = ("monthly_micros", "thresholds_percent", "forecast_thresholds_percent", "action")


async def put(work: Work, principal: Principal, asked: NewBudget, if_match: str | None) -> tuple[Row[Any], Budget]:
    """Set the budget of a project or of the organization. Repeating it changes nothing."""
    principal.require(Permission.BILLING)
    principal.require_confirmed()
    if asked.project_id is None and principal.project_id is not None:
        raise Problem(
            Code.PERMISSION_DENIED, "A project's API key sets its own project's budget only: name it in project_id."
        )
    await quotas.lock(work)  # one change at a time; deleting the project takes it too
    if asked.project_id is not None:
        await projects.visible(work, principal, asked.project_id)
    budgets = BudgetRepository(work.scope)
    had = await budgets.of_project(asked.project_id)
    require_unchanged(had, if_match)
    if asked.action == "suspend" and (had is None or _cap(had) != _cap(asked)):
        await _require_possible(work, asked)
    values = {name: getattr(asked, name) for name in _SETTINGS}
    now = datetime.now(UTC)
    if had is None:
        await budgets.insert(id=new_id(), project_id=asked.project_id, created_at=now, updated_at=now, **values)
    elif any(getattr(had, name) != value for name, value in values.items()):
        await budgets.update(had.id, updated_at=now, **values)
    row = await budgets.of_project(asked.project_id)
    assert row is not None, "it was written in this transaction"
    return row, (await _shown(work, [row]))[0]


def _cap(budget: Row[Any] | NewBudget) -> tuple[str, int]:
    return (budget.action, budget.monthly_micros)


async def _require_possible(work: Work, asked: NewBudget) -> None:
    """Raises `validation_failed` for a cap that this month, or a whole one, cannot stay below."""
    least = await caps.least_micros(work.scope, asked.project_id)
    if least > asked.monthly_micros:
        message = (
            f"is below what a month costs with the present reservations and kept data alone: at least {least}. "
            "Delete or resize groups first, or set a higher cap"
        )
        raise Problem(Code.VALIDATION_FAILED, errors=[FieldError(field="monthly_micros", message=message)])


async def visible(work: Work, principal: Principal, budget_id: UUID) -> Row[Any]:
    """The budget, or a 404. A project's key sees its own project's only."""
    principal.require(Permission.BILLING)
    row = await BudgetRepository(work.scope).get(budget_id)
    if row is None or principal.project_id not in (None, row.project_id):
        raise not_found("budget")
    return row


async def get(work: Work, principal: Principal, budget_id: UUID) -> tuple[Row[Any], Budget]:
    row = await visible(work, principal, budget_id)
    return row, (await _shown(work, [row]))[0]


async def page(work: Work, principal: Principal, paging: Paging) -> Page[Budget]:
    principal.require(Permission.BILLING)
    rows = await BudgetRepository(work.scope).page(paging.limit + 1, paging.after_id, principal.project_id)
    rows, cursor = paging.cut(rows)
    return Page(items=await _shown(work, rows), next_cursor=cursor)


async def delete(work: Work, principal: Principal, budget_id: UUID, if_match: str | None) -> None:
    """The budget ends. Its alerts stay on record."""
    principal.require_confirmed()
    await quotas.lock(work)
    row = await visible(work, principal, budget_id)
    require_unchanged(row, if_match)
    await BudgetRepository(work.scope).update(budget_id, deleted_at=datetime.now(UTC))


async def alerts(work: Work, principal: Principal, budget_id: UUID, paging: Paging) -> Page[BudgetAlert]:
    await visible(work, principal, budget_id)
    rows = await BudgetRepository(work.scope).alerts(budget_id, paging.limit + 1, paging.after_id)
    rows, cursor = paging.cut(rows)
    return Page(items=[_alert(row) for row in rows], next_cursor=cursor)


def etag(row: Row[Any]) -> str:
    return f'"{row.id}.{row.row_version}"'


def require_unchanged(row: Row[Any] | None, if_match: str | None) -> None:
    """Raises `precondition_failed` if the budget has changed since the caller read it."""
    if if_match is None:
        return
    if row is None or (if_match != "*" and etag(row) not in [part.strip() for part in if_match.split(",")]):
        raise Problem(Code.PRECONDITION_FAILED)


async def _shown(work: Work, rows: Iterable[Row[Any]]) -> list[Budget]:
    found = list(rows)
    month = month_name(datetime.now(UTC))
    alerts = await BudgetRepository(work.scope).alerts_of_month([row.id for row in found], month)
    acted = await CapRepository(work.scope).acted(month)
    return [_budget(row, alerts.get(row.id, []), acted.get((row.id, row.action, row.monthly_micros))) for row in found]


def _budget(row: Row[Any], alerts: Iterable[Row[Any]], acted: Row[Any] | None) -> Budget:
    return Budget(
        id=row.id,
        project_id=row.project_id,
        project_name=row.project_name,
        monthly_micros=row.monthly_micros,
        currency=prices.CURRENCY,
        thresholds_percent=row.thresholds_percent,
        forecast_thresholds_percent=row.forecast_thresholds_percent,
        action=row.action,
        acted=None if acted is None else _in_force(acted),
        created_at=row.created_at,
        updated_at=row.updated_at,
        alerts=[_alert(alert) for alert in alerts],
    )


def _in_force(row: Row[Any]) -> CapInForce:
    return CapInForce(**{name: getattr(row, name) for name in CapInForce.model_fields})


def _alert(row: Row[Any]) -> BudgetAlert:
    return BudgetAlert(**{name: getattr(row, name) for name in BudgetAlert.model_fields})
