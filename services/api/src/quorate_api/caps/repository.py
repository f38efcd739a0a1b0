"""Caps that have acted, and the access to groups that they leave. The worker writes both."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Any, get_args
from uuid import UUID

from sqlalchemy import Row, union

from quorate_api.caps.decision import Action, Cap
from quorate_api.coordinator.schemas import Access
from quorate_api.database.ids import new_id
from quorate_api.database.scope import EveryOrganization, Scope, SomeOrganizations
from quorate_api.database.tables import budget_actions, budgets, groups, organizations

_BUDGETS, _ACTIONS, _GROUPS = budgets.c, budget_actions.c, groups.c


class CapRepository:
    """Caps of one organization, or of a batch, to read."""

    def __init__(self, scope: Scope | SomeOrganizations) -> None:
        self._scope = scope

    async def caps(self) -> list[Cap]:
        statement = self._scope.select(budgets).where(
            _BUDGETS.deleted_at.is_(None), _BUDGETS.action.in_(get_args(Action))
        )
        rows = (await self._scope.connection.execute(statement)).all()
        return [Cap(row.id, row.organization_id, row.project_id, row.action, int(row.monthly_micros)) for row in rows]

    async def acted(self, month: str) -> dict[tuple[UUID, str, int], Row[Any]]:
        """Rows of caps that have acted in the month, by their keys."""
        statement = self._scope.select(budget_actions).where(_ACTIONS.month == month)
        rows = (await self._scope.connection.execute(statement)).all()
        return {(row.budget_id, row.action, int(row.monthly_micros)): row for row in rows}

    async def barred(self) -> set[UUID]:
        """Organizations that are suspended or closing."""
        statement = self._scope.select(organizations, organizations.c.organization_id).where(
            organizations.c.standing != "active"
        )
        return set((await self._scope.connection.execute(statement)).scalars())

    async def going_on(self) -> dict[UUID, list[Row[Any]]]:
        """Groups whose access may be set, by organization."""
        columns = (_GROUPS.id, _GROUPS.organization_id, _GROUPS.project_id, _GROUPS.access_wanted)
        statement = self._scope.select(groups, *columns).where(
            _GROUPS.delete_requested_at.is_(None), _GROUPS.deleted_at.is_(None)
        )
        found: dict[UUID, list[Row[Any]]] = defaultdict(list)
        for row in (await self._scope.connection.execute(statement)).all():
            found[row.organization_id].append(row)
        return found


class AccessRepository:
    """All organizations, for the worker."""

    def __init__(self, scope: EveryOrganization) -> None:
        self._scope = scope

    async def organizations(self, after: UUID | None, limit: int) -> list[UUID]:
        """Organizations with a cap, with a group whose access is limited still, and those that are suspended or
        closing, in the order of their ids."""
        capped = self._scope.select(budgets, _BUDGETS.organization_id).where(
            _BUDGETS.deleted_at.is_(None), _BUDGETS.action.in_(get_args(Action))
        )
        limited = self._scope.select(groups, _GROUPS.organization_id).where(
            _GROUPS.access_wanted != "full", _GROUPS.deleted_at.is_(None)
        )
        barred = self._scope.select(organizations, organizations.c.organization_id).where(
            organizations.c.standing != "active", organizations.c.erased_at.is_(None)
        )
        if after is not None:
            capped = capped.where(_BUDGETS.organization_id > after)
            limited = limited.where(_GROUPS.organization_id > after)
            barred = barred.where(organizations.c.organization_id > after)
        statement = union(capped, limited, barred).order_by("organization_id").limit(limit)
        return [row[0] for row in (await self._scope.connection.execute(statement)).all()]

    async def record(self, reached: Iterable[tuple[Cap, int]], month: str, now: datetime) -> list[Row[Any]]:
        """Record that these caps act, each with the amount. Returns those that are new."""
        values = [
            {
                "id": new_id(),
                "organization_id": cap.organization_id,
                "budget_id": cap.budget_id,
                "month": month,
                "action": cap.action,
                "monthly_micros": cap.monthly_micros,
                "amount_micros": amount_micros,
                "at": now,
            }
            for cap, amount_micros in reached
        ]
        if not values:
            return []
        statement = self._scope.upsert(budget_actions).values(values).on_conflict_do_nothing()
        return list((await self._scope.connection.execute(statement.returning(budget_actions))).all())

    async def want(self, access: Access, group_ids: Iterable[UUID]) -> None:
        statement = self._scope.update(groups).where(_GROUPS.id.in_(list(group_ids)))
        await self._scope.connection.execute(statement.values(access_wanted=access))

    async def unsettled(self, limit: int) -> list[Row[Any]]:
        """Groups whose access is not the wanted one: those to limit first."""
        columns = (_GROUPS.id, _GROUPS.access_wanted)
        statement = self._scope.select(groups, *columns).where(
            _GROUPS.access != _GROUPS.access_wanted,
            _GROUPS.status.not_in(("provisioning", "deleting", "deleted")),
        )
        statement = statement.order_by(_GROUPS.access_wanted == "full", _GROUPS.id).limit(limit)
        return list((await self._scope.connection.execute(statement)).all())
