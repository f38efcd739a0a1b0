"""Projects, and their visibility to the caller."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from quorate_api.access.permissions import Permission
from quorate_api.database.ids import new_id
from quorate_api.database.work import Work
from quorate_api.errors import Code, FieldError, Problem, not_found
from quorate_api.guaranteed.repository import GuaranteeRepository
from quorate_api.http.pagination import Paging
from quorate_api.http.principal import Principal
from quorate_api.http.schemas import Page
from quorate_api.projects.repository import ProjectRepository
from quorate_api.projects.schemas import NewProject, Project
from quorate_api.quotas import service as quotas


async def create(work: Work, principal: Principal, asked: NewProject) -> Project:
    principal.require(Permission.ADMINISTER)
    await quotas.lock(work)
    await quotas.check(work, quotas.PROJECTS, adding=1)
    project_id, now = new_id(), datetime.now(UTC)
    if not await ProjectRepository(work.scope).insert(project_id, asked.name, now):
        errors = [FieldError(field="name", message="Another project has this name.")]
        raise Problem(Code.NAME_TAKEN, errors=errors)
    return Project(id=project_id, name=asked.name, created_at=now)


async def visible(work: Work, principal: Principal, project_id: UUID) -> Row[Any]:
    """The project, or a 404 for a project of another organization or other than the API key's own."""
    row = await ProjectRepository(work.scope).get(project_id) if principal.sees_project(project_id) else None
    if row is None:
        raise not_found("project")
    return row


async def get(work: Work, principal: Principal, project_id: UUID) -> Project:
    return _project(await visible(work, principal, project_id))


async def rename(work: Work, principal: Principal, project_id: UUID, name: str) -> Project:
    row = await visible(work, principal, project_id)
    principal.require(Permission.ADMINISTER)
    await quotas.lock(work)  # creating a project takes it too
    projects = ProjectRepository(work.scope)
    if await projects.name_taken(name, but=project_id):
        errors = [FieldError(field="name", message="Another project has this name.")]
        raise Problem(Code.NAME_TAKEN, errors=errors)
    await projects.rename(project_id, name)
    return Project(id=row.id, name=name, created_at=row.created_at)


async def delete(work: Work, principal: Principal, project_id: UUID) -> None:
    await visible(work, principal, project_id)
    principal.require(Permission.ADMINISTER)
    await quotas.lock(work)  # creating a group takes it too
    projects = ProjectRepository(work.scope)
    groups = await projects.group_count(project_id)
    if groups:
        raise Problem(Code.PROJECT_NOT_EMPTY, f"The project has {groups} groups; delete them first.")
    if await GuaranteeRepository(work.scope).has_one(project_id):
        raise Problem(Code.PROJECT_NOT_EMPTY, "The project has a guarantee; take it back first.")
    await projects.delete(project_id, datetime.now(UTC))


async def page(work: Work, principal: Principal, paging: Paging) -> Page[Project]:
    rows = await ProjectRepository(work.scope).page(paging.limit + 1, paging.after_id, principal.project_id)
    rows, cursor = paging.cut(rows)
    return Page(items=[_project(row) for row in rows], next_cursor=cursor)


def _project(row: Row[Any]) -> Project:
    return Project(id=row.id, name=row.name, created_at=row.created_at)
