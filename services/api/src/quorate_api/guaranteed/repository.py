"""Guarantees of projects. Each change is a row; confirmed rows never change."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, func

from quorate_api.database.scope import EveryOrganization, Scope, SomeOrganizations
from quorate_api.database.tables import guarantees, projects
from quorate_api.guaranteed.calculator import Change, Period, periods

_COLUMNS = guarantees.c


class GuaranteeRepository:
    """The worker uses it too, with the view of every organization."""

    def __init__(self, scope: Scope | SomeOrganizations | EveryOrganization) -> None:
        self._scope = scope

    async def latest(self, project_id: UUID) -> Row[Any] | None:
        """The last change, confirmed or not."""
        statement = self._scope.select(guarantees).where(_COLUMNS.project_id == project_id)
        statement = statement.order_by(_COLUMNS.revision.desc()).limit(1)
        return (await self._scope.connection.execute(statement)).one_or_none()

    async def confirmed(self, project_id: UUID) -> Row[Any] | None:
        """The last confirmed change; one without terms took the guarantee back."""
        statement = self._scope.select(guarantees).where(_COLUMNS.project_id == project_id, _COLUMNS.since.is_not(None))
        statement = statement.order_by(_COLUMNS.revision.desc()).limit(1)
        return (await self._scope.connection.execute(statement)).one_or_none()

    async def has_one(self, project_id: UUID) -> bool:
        """Whether a guarantee is in force, or may be: the answer to a change was lost."""
        latest = await self.latest(project_id)
        confirmed = await self.confirmed(project_id)
        return any(row is not None and row.terms is not None for row in (latest, confirmed))

    async def insert(self, **values: object) -> bool:
        """False if another request made this revision."""
        assert isinstance(self._scope, Scope)
        statement = self._scope.upsert(guarantees, **values).on_conflict_do_nothing().returning(_COLUMNS.revision)
        return (await self._scope.connection.execute(statement)).first() is not None

    async def confirm(self, project_id: UUID, revision: int, since: datetime) -> None:
        assert not isinstance(self._scope, SomeOrganizations)
        statement = self._scope.update(guarantees).where(
            _COLUMNS.project_id == project_id, _COLUMNS.revision == revision, _COLUMNS.since.is_(None)
        )
        await self._scope.connection.execute(statement.values(since=since))

    async def call_off(self, project_id: UUID, revision: int) -> None:
        assert not isinstance(self._scope, SomeOrganizations)
        statement = self._scope.delete(guarantees).where(
            _COLUMNS.project_id == project_id, _COLUMNS.revision == revision, _COLUMNS.since.is_(None)
        )
        await self._scope.connection.execute(statement)

    async def unsettled(self, before: datetime) -> list[Row[Any]]:
        statement = self._scope.select(guarantees).where(_COLUMNS.since.is_(None), _COLUMNS.requested_at < before)
        return list((await self._scope.connection.execute(statement)).all())

    async def by_organization(self) -> Mapping[UUID, list[Period]]:
        """Times with a guarantee that costs something, oldest first."""
        columns = (*guarantees.c, projects.c.name.label("project_name"))
        statement = self._scope.select(guarantees, *columns).join(projects, projects.c.id == _COLUMNS.project_id)
        statement = statement.where(_COLUMNS.since.is_not(None)).order_by(_COLUMNS.project_id, _COLUMNS.revision)
        changes: dict[tuple[UUID, UUID], list[Change]] = defaultdict(list)
        for row in (await self._scope.connection.execute(statement)).all():
            tokens_per_s = (row.terms or {}).get("shared_tokens_per_s", 0)
            change = Change(row.project_id, row.project_name, row.since, row.hourly_micros, tokens_per_s)
            changes[row.organization_id, row.project_id].append(change)
        found: dict[UUID, list[Period]] = defaultdict(list)
        for (organization_id, _), of_project in changes.items():
            found[organization_id] += periods(of_project)
        return {organization_id: own for organization_id, own in found.items() if own}

    async def first_at(self) -> datetime | None:
        """The begin of the first one. None: there is none."""
        found: datetime | None = (
            await self._scope.connection.execute(self._scope.select(guarantees, func.min(_COLUMNS.since)))
        ).scalar_one()
        return found

    async def tokens_per_s(self) -> int:
        """The shared tokens of all projects, by the last change of each, confirmed or not."""
        statement = self._scope.select(guarantees, _COLUMNS.terms, _COLUMNS.project_id).order_by(_COLUMNS.revision)
        latest = {row.project_id: row.terms for row in (await self._scope.connection.execute(statement)).all()}
        return sum((terms or {}).get("shared_tokens_per_s", 0) for terms in latest.values())
