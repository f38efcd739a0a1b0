"""`/v1/projects`."""

from uuid import UUID

from fastapi import APIRouter, Response

from quorate_api.http.pagination import PageParameters
from quorate_api.http.principal import Caller, Transaction
from quorate_api.http.route import ScopedRoute
from quorate_api.http.schemas import Page
from quorate_api.projects import service
from quorate_api.projects.schemas import NewProject, Project, ProjectSettings

router = APIRouter(prefix="/v1/projects", tags=["projects"], route_class=ScopedRoute)


@router.get("")
async def list_projects(work: Transaction, caller: Caller, paging: PageParameters) -> Page[Project]:
    """The organization's projects, newest first."""
    return await service.page(work, caller, paging)


@router.post("", status_code=201)
async def create_project(asked: NewProject, work: Transaction, caller: Caller) -> Project:
    """Create a project."""
    return await service.create(work, caller, asked)


@router.get("/{project_id}")
async def get_project(project_id: UUID, work: Transaction, caller: Caller) -> Project:
    """One project."""
    return await service.get(work, caller, project_id)


@router.put("/{project_id}/settings")
async def change_project_settings(
    project_id: UUID, asked: ProjectSettings, work: Transaction, caller: Caller
) -> Project:
    """Give a project another name. Its groups, keys and guarantee stay."""
    return await service.rename(work, caller, project_id, asked.name)


@router.delete("/{project_id}", status_code=204)
async def delete_project(project_id: UUID, work: Transaction, caller: Caller) -> Response:
    """Delete a project that has no groups, and revoke its API keys."""
    await service.delete(work, caller, project_id)
    return Response(status_code=204)
