"""`/v1/budgets`."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Response

from quorate_api.budgets import service
from quorate_api.budgets.schemas import Budget, BudgetAlert, NewBudget
from quorate_api.http.pagination import PageParameters
from quorate_api.http.principal import Caller, Transaction
from quorate_api.http.route import ScopedRoute
from quorate_api.http.schemas import Page

router = APIRouter(prefix="/v1/budgets", tags=["billing"], route_class=ScopedRoute)

IfMatch = Annotated[str | None, Header(description="An ETag: 412 if the budget has changed since.")]


@router.get("")
async def list_budgets(work: Transaction, caller: Caller, paging: PageParameters) -> Page[Budget]:
    """The organization's budgets with this month's alerts, newest first."""
    return await service.page(work, caller, paging)


@router.put("")
async def put_budget(
    asked: NewBudget, response: Response, work: Transaction, caller: Caller, if_match: IfMatch = None
) -> Budget:
    """Set the budget of a project, or of the organization. Repeating it is harmless.

    Each threshold gives an alert once a month, within a minute. Changing the amount does not repeat alerts of the
    month; deleting the budget and setting it again does."""
    row, budget = await service.put(work, caller, asked, if_match)
    response.headers["ETag"] = service.etag(row)
    return budget


@router.get("/{budget_id}")
async def get_budget(budget_id: UUID, response: Response, work: Transaction, caller: Caller) -> Budget:
    """One budget with this month's alerts."""
    row, budget = await service.get(work, caller, budget_id)
    response.headers["ETag"] = service.etag(row)
    return budget


@router.delete("/{budget_id}", status_code=204)
async def delete_budget(budget_id: UUID, work: Transaction, caller: Caller, if_match: IfMatch = None) -> Response:
    """Delete a budget. Its alerts stay on record."""
    await service.delete(work, caller, budget_id, if_match)
    return Response(status_code=204)


@router.get("/{budget_id}/alerts")
async def list_budget_alerts(
    budget_id: UUID, work: Transaction, caller: Caller, paging: PageParameters
) -> Page[BudgetAlert]:
    """The budget's alerts of all months, newest first."""
    return await service.alerts(work, caller, budget_id, paging)
