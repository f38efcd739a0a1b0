"""Use and bad minutes of a project's groups. Partitions count with their group."""

from typing import Any
from uuid import UUID

from sqlalchemy import Row, case, func
from sqlalchemy.sql.elements import ColumnElement

from quorate_api.database.scope import Scope
from quorate_api.database.tables import groups, sla_bad_minutes, usage_windows

_WHOLE = func.coalesce(groups.c.partition_of, groups.c.id)
HEADS = ("head", "sole")


class GlanceRepository:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def used(self, project_id: UUID, minute_s: int) -> dict[UUID, int]:
        """Entries that were committed in the minute, by group; idle ones are left out."""
        window = usage_windows.c
        grown = func.greatest(window.committed_entries - window.first_committed_entries, 0)
        entries = func.sum(case((window.role.in_(HEADS), grown), else_=0))
        statement = (
            self._scope.select(usage_windows, _WHOLE.label("group_id"), entries.label("amount"))
            .join(groups, groups.c.id == window.group_id)
            .where(*_in_project(project_id), window.window_start_s == minute_s)
            .group_by(_WHOLE)
        )
        return _amounts((await self._scope.connection.execute(statement)).all())

    async def bad_minutes(self, project_id: UUID, since_s: int) -> dict[UUID, int]:
        """Minutes from then on that missed a clause, by group, as far as they are judged."""
        statement = (
            self._scope.select(sla_bad_minutes, _WHOLE.label("group_id"), func.count().label("amount"))
            .join(groups, groups.c.id == sla_bad_minutes.c.group_id)
            .where(*_in_project(project_id), sla_bad_minutes.c.start_s >= since_s)
            .group_by(_WHOLE)
        )
        return _amounts((await self._scope.connection.execute(statement)).all())


def _in_project(project_id: UUID) -> list[ColumnElement[bool]]:
    return [groups.c.project_id == project_id, groups.c.deleted_at.is_(None)]


def _amounts(rows: Any) -> dict[UUID, int]:
    found: dict[UUID, int] = {}
    row: Row[Any]
    for row in rows:
        found[row.group_id] = int(row.amount)
    return found
