"""`/v1/projects/{id}/groups`, `/v1/groups/{id}`: the group itself, its handle, placement and events."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Request, Response

from quorate_api.groups import partitioning, resizing, service, settings
from quorate_api.groups.schemas import (
    CreatedGroup,
    Group,
    GroupCosts,
    GroupEvent,
    GroupPartitions,
    GroupSettings,
    Handle,
    NewGroup,
    Placement,
    Reset,
    Resize,
)
from quorate_api.http.pagination import PageParameters
from quorate_api.http.principal import Caller, Environment, Transaction
from quorate_api.http.route import ScopedRoute
from quorate_api.http.schemas import Page

router = APIRouter(prefix="/v1", tags=["groups"], route_class=ScopedRoute)


@router.get("/projects/{project_id}/groups")
async def list_groups(project_id: UUID, work: Transaction, caller: Caller, paging: PageParameters) -> Page[Group]:
    """The project's groups, newest first."""
    return await service.page(work, caller, project_id, paging)


@router.post("/projects/{project_id}/groups", status_code=201)
async def create_group(
    project_id: UUID,
    asked: NewGroup,
    request: Request,
    response: Response,
    work: Transaction,
    services: Environment,
    caller: Caller,
) -> CreatedGroup:
    """Create a group. It is admitted and placed, or refused (409 `admission_refused`) with the reason."""
    row, group = await service.create(work, services, caller, project_id, asked, request.state.operation_id)
    response.headers["ETag"] = service.etag(row)
    response.headers["Location"] = f"/v1/groups/{row.id}"
    return group


@router.get("/groups/{group_id}")
async def get_group(
    group_id: UUID,
    response: Response,
    work: Transaction,
    caller: Caller,
    if_none_match: Annotated[str | None, Header(description="An ETag: 304 if the group still has it.")] = None,
) -> Group:
    """One group."""
    row = await service.visible(work, caller, group_id)
    response.headers["ETag"] = service.etag(row)
    if if_none_match is not None and service.etag(row) in [part.strip() for part in if_none_match.split(",")]:
        return Response(status_code=304, headers={"ETag": service.etag(row)})  # type: ignore[return-value]
    return await service.group_of(work, row)


@router.patch("/groups/{group_id}")
async def resize_group(
    group_id: UUID,
    asked: Resize,
    response: Response,
    work: Transaction,
    services: Environment,
    caller: Caller,
    if_match: Annotated[str | None, Header(description="An ETag: 412 if the group has changed since.")] = None,
) -> Group:
    """Change the SLA of a group in place. The log stays, appends continue, and the new price applies from then on.

    `partitions` adds partitions: entries stay where they are, and clients append by the new assignment of keys once all
    entries before it are committed. 409 `admission_refused`: there is no room, and nothing changes. Repeating it is
    harmless."""
    row = await resizing.resize(work, services, caller, group_id, asked, if_match)
    response.headers["ETag"] = service.etag(row)
    return await service.group_of(work, row)


@router.put("/groups/{group_id}/settings")
async def change_group_settings(
    group_id: UUID,
    asked: GroupSettings,
    response: Response,
    work: Transaction,
    caller: Caller,
    if_match: Annotated[str | None, Header(description="An ETag: 412 if the group has changed since.")] = None,
) -> Group:
    """Change a group's name or its protection from deletion. The log, its clients and its SLA are not touched.

    Keys whose scopes name groups are about names: such a key sees the group if it has the new one."""
    row = await settings.change(work, caller, group_id, asked, if_match)
    response.headers["ETag"] = service.etag(row)
    return await service.group_of(work, row)


@router.delete("/groups/{group_id}", status_code=204)
async def delete_group(
    group_id: UUID,
    work: Transaction,
    services: Environment,
    caller: Caller,
    if_match: Annotated[str | None, Header(description="An ETag: 412 if the group has changed since.")] = None,
) -> Response:
    """Delete a group with its log. The reservation ends now. The servers delete the log a little later.

    409 `deletion_protected`: the group is protected; `PUT /v1/groups/{id}/settings` ends that."""
    await service.delete(work, services, caller, group_id, if_match)
    return Response(status_code=204)


@router.post("/groups/{group_id}/reset")
async def reset_group(
    group_id: UUID, asked: Reset, response: Response, work: Transaction, services: Environment, caller: Caller
) -> Group:
    """Reset a lost group: it begins an empty log under the same SLA.

    The entries of the lost log are gone for good. Offsets of the new log are greater than all old ones."""
    row = await service.reset(work, services, caller, group_id, asked.epoch)
    response.headers["ETag"] = service.etag(row)
    return await service.group_of(work, row)


@router.get("/groups/{group_id}/partitions")
async def get_partitions(group_id: UUID, work: Transaction, services: Environment, caller: Caller) -> GroupPartitions:
    """The group's partitions, each with its chain. A group without has one, which is itself."""
    row = await service.visible(work, caller, group_id)
    return await partitioning.shown(work, services, row)


@router.get("/groups/{group_id}/handle")
async def get_handle(group_id: UUID, work: Transaction, services: Environment, caller: Caller) -> Handle:
    """The addresses of the group's replicas, and a token for them."""
    return await service.handle(work, services, caller, group_id)


@router.get("/groups/{group_id}/costs")
async def get_group_costs(group_id: UUID, work: Transaction, services: Environment, caller: Caller) -> GroupCosts:
    """The cost of appends and reads of several sizes, as parts of the group's reservation."""
    return await service.operation_costs(work, services, caller, group_id)


@router.get("/groups/{group_id}/placement")
async def get_placement(group_id: UUID, work: Transaction, services: Environment, caller: Caller) -> Placement:
    """The servers that hold the group, in the order of the chain."""
    return await service.placement(work, services, caller, group_id)


@router.get("/groups/{group_id}/events")
async def list_group_events(
    group_id: UUID, work: Transaction, caller: Caller, paging: PageParameters
) -> Page[GroupEvent]:
    """The group's events, newest first."""
    return await service.events(work, caller, group_id, paging)
