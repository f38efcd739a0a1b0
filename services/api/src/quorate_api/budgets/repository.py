"""Budgets and their alerts. The worker writes alerts, each threshold once a month."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, and_

from quorate_api.budgets.evaluation import Alert
from quorate_api.database.ids import new_id
from quorate_api.database.scope import EveryOrganization, Rows, Scope, SomeOrganizations
from quorate_api.database.tables import budget_alerts, budgets, projects

_BUDGETS, _ALERTS = budgets.c, budget_alerts.c


class BudgetRepository:
    """Budgets of one organization, for requests."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def all_of(self) -> list[Row[Any]]:
        """Every budget. There is one for each project, and the organization's."""
        return list((await self._scope.connection.execute(self._existing())).all())

    async def page(self, limit: int, before: UUID | None, only: UUID | None) -> list[Row[Any]]:
        """Newest first, with the project's name. `only`: one project's, for API keys."""
        statement = self._named().order_by(_BUDGETS.id.desc()).limit(limit)
        if before is not None:
            statement = statement.where(_BUDGETS.id < before)
        if only is not None:
            statement = statement.where(_BUDGETS.project_id == only)
        return list((await self._scope.connection.execute(statement)).all())

    async def get(self, budget_id: UUID) -> Row[Any] | None:
        statement = self._named().where(_BUDGETS.id == budget_id)
        return (await self._scope.connection.execute(statement)).one_or_none()

    async def of_project(self, project_id: UUID | None) -> Row[Any] | None:
        """The project's budget, or the organization's. The caller holds the organization's lock."""
        statement = self._named().where(_BUDGETS.project_id.is_not_distinct_from(project_id))
        return (await self._scope.connection.execute(statement)).one_or_none()

    async def insert(self, **values: object) -> None:
        await self._scope.connection.execute(self._scope.insert(budgets, row_version=1, **values))

    async def update(self, budget_id: UUID, **values: object) -> None:
        statement = self._scope.update(budgets).where(_BUDGETS.id == budget_id)
        await self._scope.connection.execute(statement.values(row_version=_BUDGETS.row_version + 1, **values))

    async def alerts_of_month(self, budget_ids: Iterable[UUID], month: str) -> dict[UUID, list[Row[Any]]]:
        """Newest first, by budget."""
        statement = self._scope.select(budget_alerts).where(
            _ALERTS.budget_id.in_(list(budget_ids)), _ALERTS.month == month
        )
        found: dict[UUID, list[Row[Any]]] = defaultdict(list)
        for row in (await self._scope.connection.execute(statement.order_by(_ALERTS.id.desc()))).all():
            found[row.budget_id].append(row)
        return found

    async def alerts(self, budget_id: UUID, limit: int, before: UUID | None) -> list[Row[Any]]:
        statement = self._scope.select(budget_alerts).where(_ALERTS.budget_id == budget_id)
        statement = statement.order_by(_ALERTS.id.desc()).limit(limit)
        if before is not None:
            statement = statement.where(_ALERTS.id < before)
        return list((await self._scope.connection.execute(statement)).all())

    def _existing(self) -> Rows:
        return self._scope.select(budgets).where(_BUDGETS.deleted_at.is_(None))

    def _named(self) -> Rows:
        of_project = and_(projects.c.organization_id == _BUDGETS.organization_id, projects.c.id == _BUDGETS.project_id)
        statement = self._scope.select(budgets, budgets, projects.c.name.label("project_name"))
        return statement.outerjoin(projects, of_project).where(_BUDGETS.deleted_at.is_(None))


class AlertRepository:
    """Alerts of all organizations, for the worker."""

    def __init__(self, scope: EveryOrganization) -> None:
        self._scope = scope

    async def organizations(self, after: UUID | None, limit: int) -> list[UUID]:
        """Organizations with a budget, in the order of their ids."""
        owner = _BUDGETS.organization_id
        statement = self._scope.select(budgets, owner).where(_BUDGETS.deleted_at.is_(None))
        if after is not None:
            statement = statement.where(owner > after)
        statement = statement.group_by(owner).order_by(owner).limit(limit)
        return [row.organization_id for row in (await self._scope.connection.execute(statement)).all()]

    async def budgets_of(self, some: SomeOrganizations) -> list[Row[Any]]:
        statement = some.select(budgets).where(_BUDGETS.deleted_at.is_(None))
        return list((await self._scope.connection.execute(statement)).all())

    async def fired(self, some: SomeOrganizations, month: str) -> dict[UUID, set[tuple[str, int]]]:
        """Kind and percent of the month's alerts, by budget."""
        columns = (_ALERTS.budget_id, _ALERTS.kind, _ALERTS.threshold_percent)
        statement = some.select(budget_alerts, *columns).where(_ALERTS.month == month)
        found: dict[UUID, set[tuple[str, int]]] = defaultdict(set)
        for budget_id, kind, percent in (await self._scope.connection.execute(statement)).all():
            found[budget_id].add((str(kind), int(percent)))
        return found

    async def record(self, alerts: list[Alert], now: datetime) -> list[Row[Any]]:
        """Returns those that are new. An alert that is there already stays as it is."""
        if not alerts:
            return []
        values = [
            {name: getattr(alert, name) for name in Alert.__slots__} | {"id": new_id(), "at": now} for alert in alerts
        ]
        statement = self._scope.upsert(budget_alerts).values(values).on_conflict_do_nothing()
        return list((await self._scope.connection.execute(statement.returning(budget_alerts))).all())
