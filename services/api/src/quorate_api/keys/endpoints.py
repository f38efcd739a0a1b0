"""`/v1/projects/{id}/keys`, `/v1/keys`."""

from uuid import UUID

from fastapi import APIRouter, Response

from quorate_api.http.pagination import PageParameters
from quorate_api.http.principal import Caller, Environment, Transaction
from quorate_api.http.route import ScopedRoute
from quorate_api.http.schemas import Page
from quorate_api.keys import service
from quorate_api.keys.schemas import (
    CreatedKey,
    CreatedOrganizationKey,
    Key,
    NewKey,
    NewOrganizationKey,
    OrganizationKey,
    RotatedKey,
    Rotation,
)

router = APIRouter(prefix="/v1", tags=["keys"], route_class=ScopedRoute)


@router.get("/projects/{project_id}/keys")
async def list_keys(project_id: UUID, work: Transaction, caller: Caller, paging: PageParameters) -> Page[Key]:
    """The project's API keys, newest first, without their secrets."""
    return await service.page(work, caller, project_id, paging)


@router.post("/projects/{project_id}/keys", status_code=201)
async def create_key(
    project_id: UUID, asked: NewKey, work: Transaction, services: Environment, caller: Caller
) -> CreatedKey:
    """Create an API key. Its secret is in this answer only."""
    return await service.create(work, services, caller, project_id, asked)


@router.get("/organization/keys")
async def list_organization_keys(work: Transaction, caller: Caller, paging: PageParameters) -> Page[OrganizationKey]:
    """The organization's own API keys, newest first, without their secrets."""
    return await service.organization_page(work, caller, paging)


@router.post("/organization/keys", status_code=201)
async def create_organization_key(
    asked: NewOrganizationKey, work: Transaction, services: Environment, caller: Caller
) -> CreatedOrganizationKey:
    """Create a key for infrastructure as code: it administers the organization's projects, groups and keys."""
    return await service.create_for_organization(work, services, caller, asked)


@router.post("/keys/{key_id}/rotate")
async def rotate_key(
    key_id: UUID, asked: Rotation, work: Transaction, services: Environment, caller: Caller
) -> RotatedKey:
    """Give an API key another secret. The former one is accepted for a while, so that no append fails meanwhile."""
    return await service.rotate(work, services, caller, key_id, asked)


@router.delete("/keys/{key_id}", status_code=204)
async def revoke_key(key_id: UUID, work: Transaction, caller: Caller) -> Response:
    """Revoke an API key. The API refuses it at once, and servers refuse its tokens within ten seconds."""
    await service.revoke(work, caller, key_id)
    return Response(status_code=204)
