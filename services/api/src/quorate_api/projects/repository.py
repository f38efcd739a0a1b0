"""Projects of one organization."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, func

from quorate_api.database.scope import Scope
from quorate_api.database.tables import api_keys, budgets, groups, projects


class ProjectRepository:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def insert(self, project_id: UUID, name: str, now: datetime) -> bool:
        """False if the name is taken."""
        statement = (
            self._scope.upsert(projects, id=project_id, name=name, created_at=now)
            .on_conflict_do_nothing()
            .returning(projects.c.id)
        )
        return (await self._scope.connection.execute(statement)).first() is not None

    async def get(self, project_id: UUID) -> Row[Any] | None:
        statement = self._scope.select(projects).where(projects.c.id == project_id, projects.c.deleted_at.is_(None))
        return (await self._scope.connection.execute(statement)).one_or_none()

    async def name_taken(self, name: str, *, but: UUID) -> bool:
        statement = self._scope.select(projects, projects.c.id).where(
            projects.c.name == name, projects.c.deleted_at.is_(None), projects.c.id != but
        )
        return (await self._scope.connection.execute(statement)).first() is not None

    async def rename(self, project_id: UUID, name: str) -> None:
        statement = self._scope.update(projects).where(projects.c.id == project_id, projects.c.deleted_at.is_(None))
        await self._scope.connection.execute(statement.values(name=name))

    async def page(self, limit: int, before: UUID | None, only: UUID | None) -> list[Row[Any]]:
        """Newest first. `only`: one project, for API keys."""
        statement = (
            self._scope.select(projects)
            .where(projects.c.deleted_at.is_(None))
            .order_by(projects.c.id.desc())
            .limit(limit)
        )
        if before is not None:
            statement = statement.where(projects.c.id < before)
        if only is not None:
            statement = statement.where(projects.c.id == only)
        return list((await self._scope.connection.execute(statement)).all())

    async def group_count(self, project_id: UUID) -> int:
        statement = self._scope.select(groups, func.count()).where(
            groups.c.project_id == project_id, groups.c.deleted_at.is_(None)
        )
        return int((await self._scope.connection.execute(statement)).scalar_one())

    async def delete(self, project_id: UUID, now: datetime) -> None:
        """Delete the project with its budget, and revoke its API keys. The caller has checked that it has no groups."""
        revocation = self._scope.update(api_keys).where(
            api_keys.c.project_id == project_id, api_keys.c.revoked_at.is_(None)
        )
        await self._scope.connection.execute(revocation.values(revoked_at=now))
        end = self._scope.update(budgets).where(budgets.c.project_id == project_id, budgets.c.deleted_at.is_(None))
        await self._scope.connection.execute(end.values(deleted_at=now))
        deletion = self._scope.update(projects).where(projects.c.id == project_id)
        await self._scope.connection.execute(deletion.values(deleted_at=now))
