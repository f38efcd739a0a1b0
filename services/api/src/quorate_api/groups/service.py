"""Creating, finding and deleting groups.

Creating has three steps: store the intent (status `provisioning`), ask the coordinator for admission, store its answer.
A refusal removes the intent. When the coordinator's answer is lost, the intent stays and the worker's reconciler
finishes it. The client's repetition with the same Idempotency-Key continues with the same group.
"""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from quorate_api import limits
from quorate_api.access.permissions import Permission
from quorate_api.admission import service as admission
from quorate_api.coordinator.client import CoordinatorUnavailable, Refused, RequestInvalid
from quorate_api.coordinator.schemas import GroupView, ObservedSla
from quorate_api.database.ids import new_id
from quorate_api.database.work import Work
from quorate_api.errors import Code, FieldError, Problem, not_found
from quorate_api.groups import costs, handles, partitioning
from quorate_api.groups.repository import GroupRepository
from quorate_api.groups.schemas import (
    AskedResize,
    CreatedGroup,
    Group,
    GroupCosts,
    GroupEvent,
    Handle,
    NewGroup,
    PlacedRelocation,
    PlacedReplica,
    Placement,
    Status,
)
from quorate_api.groups.views import stored_view
from quorate_api.http.pagination import Paging
from quorate_api.http.principal import Principal
from quorate_api.http.schemas import Page
from quorate_api.http.services import Services
from quorate_api.partitioned.repository import PartitionedRepository, Whole
from quorate_api.pricing.reservation import sum_of
from quorate_api.pricing.schemas import Price
from quorate_api.projects import service as projects
from quorate_api.projects.repository import ProjectRepository
from quorate_api.promises.schemas import SlaPromise
from quorate_api.quotas import service as quotas

ACTIVE_WAIT_S = 3.0  # bound on a create's wait for the replicas' first configuration
ACTIVE_POLL_S = 0.05


async def create(
    work: Work,
    services: Services,
    principal: Principal,
    project_id: UUID,
    asked: NewGroup,
    operation_id: UUID | None,
) -> tuple[Row[Any], CreatedGroup]:
    await projects.visible(work, principal, project_id)
    principal.require(Permission.MANAGE, asked.name)
    group_id = operation_id or new_id()
    known = await GroupRepository(work.scope).get(group_id)
    if known is not None and known.status in ("deleting", "deleted"):
        raise Problem(Code.NOT_FOUND, "The group of this Idempotency-Key was created and has been deleted since.")
    if known is None:  # else: a repetition continues where the first request stopped
        await _store_intent(work, services, group_id, project_id, asked)
    if asked.partitions > 1:
        partitions = await partitioning.settle(work, services, group_id, project_id, is_first=known is None)
        view = partitions.partitions[0]
    else:
        partitions = None
        view = await _admit(work, services, group_id, project_id, asked.sla(), is_first=known is None)
        await GroupRepository(work.scope).observe(view, datetime.now(UTC))
    row = await GroupRepository(work.scope).get(group_id)
    if row is None:
        raise not_found("group")
    reachable = view.status != "provisioning" and view.replicas and handles.operations_of(principal, row)
    handle = await handles.issue(work, services, principal, row, view, partitions) if reachable else None
    shown = await group_of(work, row)
    return row, CreatedGroup(**shown.model_dump(by_alias=False), handle=handle)


async def _store_intent(work: Work, services: Services, group_id: UUID, project_id: UUID, asked: NewGroup) -> None:
    """The next call to the coordinator commits the intent."""
    groups, sla, partitions = GroupRepository(work.scope), asked.sla(), asked.partitions
    partitioning.check_name(asked.name, partitions)
    taken = Problem(
        Code.NAME_TAKEN, errors=[FieldError(field="name", message="Another group of the project has this name.")]
    )
    if await groups.names_taken(project_id, [asked.name]):
        raise taken
    divided = partitions if partitions > 1 else None
    quote = await admission.quote(work, services, sla, project_id=project_id, partitions=divided)
    if not quote.admissible:
        raise admission.refused(quote)
    await quotas.lock(work)
    if await ProjectRepository(work.scope).get(project_id) is None:  # deleted meanwhile
        raise not_found("project")
    await quotas.check(work, quotas.GROUPS_PER_PROJECT, adding=1, project_id=project_id)
    if partitions > 1:
        await quotas.check(work, quotas.PARTITIONS_PER_PROJECT, adding=partitions - 1, project_id=project_id)
    await quotas.check(work, quotas.TOTAL_RATE, adding=asked.rate_per_s)
    await quotas.check(work, quotas.TOTAL_READ_RATE, adding=asked.read_rate_per_s)
    parts = partitioning.parts_of(quote, sla)
    price = sum_of(partitioning.prices_of(parts))
    await services.require_spend_room(work, project_id, price.hourly_micros)
    ids = await partitioning.insert(work, group_id, project_id, asked.name, parts, first=0)
    if ids is None:
        raise taken
    if partitions > 1:
        await partitioning.begin(work, group_id, sla, ids, parts, 1)
    if asked.deletion_protection:
        await groups.protect(group_id, True)
    await note(work, group_id, "group_requested", f"The group {asked.name} was asked for.")


async def _admit(
    work: Work, services: Services, group_id: UUID, project_id: UUID, sla: ObservedSla, *, is_first: bool
) -> GroupView:
    """`is_first`: the coordinator was not asked before, so that a request which did not reach it has not happened."""
    try:
        async with work.outside():
            view = await services.coordinator.put_group(group_id, project_id, sla)
            return await _until_active(services, view)
    except Refused as error:
        await _undo_intent(work, group_id)
        raise Problem(Code.ADMISSION_REFUSED, error.refusal.message, refusal=error.refusal) from error
    except RequestInvalid as error:
        await _undo_intent(work, group_id)
        raise admission.invalid_sla(error) from error
    except CoordinatorUnavailable as error:
        if is_first and not error.sent:
            await _undo_intent(work, group_id)
        raise


async def _until_active(services: Services, view: GroupView) -> GroupView:
    """Give the replicas a moment to apply their configuration, so that a customer's first append succeeds."""
    deadline = time.monotonic() + ACTIVE_WAIT_S
    while view.status == "provisioning" and time.monotonic() < deadline:
        await asyncio.sleep(ACTIVE_POLL_S)
        try:
            newer = await services.coordinator.group(view.group_id, timeout_s=1.0)
        except CoordinatorUnavailable:
            return view  # the group is admitted; the worker observes its status later
        view = newer or view
    return view


async def _undo_intent(work: Work, group_id: UUID) -> None:
    await GroupRepository(work.scope).forget_intent(group_id)
    await work.checkpoint()


async def visible(
    work: Work,
    principal: Principal,
    group_id: UUID,
    permission: Permission = Permission.VIEW,
    *,
    deleted: bool = False,
) -> Row[Any]:
    """The group, if the caller has the permission on it. Raises a 404 for a group of another organization, and for one
    that the API key does not see."""
    row = await GroupRepository(work.scope).get(group_id)
    if row is None or (row.deleted_at is not None and not deleted):
        raise not_found("group")
    name = row.name if row.partition_of is None else row.name.rpartition("/")[0]  # the name of the whole group
    if not principal.sees_project(row.project_id) or not principal.allowed.has(Permission.VIEW, name):
        raise not_found("group")
    principal.require(permission, name)
    return row


async def page(work: Work, principal: Principal, project_id: UUID, paging: Paging) -> Page[Group]:
    await projects.visible(work, principal, project_id)
    seen = principal.allowed.groups_seen()
    rows = await GroupRepository(work.scope).page(project_id, paging.limit + 1, paging.after_id, seen)
    rows, cursor = paging.cut(rows)
    return Page(items=await _groups_of(work, rows), next_cursor=cursor)


async def delete(work: Work, services: Services, principal: Principal, group_id: UUID, if_match: str | None) -> None:
    """A stored intent is carried out: if the coordinator is away, the worker repeats the call."""
    row = await visible(work, principal, group_id, Permission.MANAGE)
    require_whole(row)
    require_unchanged(row, if_match)
    if row.deletion_protection:
        raise Problem(Code.DELETION_PROTECTED, f"The group {row.name} is protected from deletion.")
    await GroupRepository(work.scope).request_deletion(group_id, datetime.now(UTC))
    await note(work, group_id, "deletion_requested", f"Deleting the group {row.name} was asked for.")
    try:
        async with work.outside():
            await services.coordinator.delete_group(group_id)
    except CoordinatorUnavailable:
        return
    await GroupRepository(work.scope).finish_deletion(group_id, datetime.now(UTC))


def require_whole(row: Row[Any]) -> None:
    """Raises `group_is_partition` for a partition, which changes with its group alone."""
    if row.partition_of is not None:
        raise Problem(Code.GROUP_IS_PARTITION, f"It is partition {row.partition} of the group {row.partition_of}.")


def require_unchanged(row: Row[Any], if_match: str | None) -> None:
    """Raises `precondition_failed` if the group has changed since the caller read it."""
    if if_match is not None and if_match != "*" and etag(row) not in [part.strip() for part in if_match.split(",")]:
        raise Problem(Code.PRECONDITION_FAILED)


async def reset(work: Work, services: Services, principal: Principal, group_id: UUID, epoch: int) -> Row[Any]:
    """Reset a lost group. Usage is counted per log, so that no entry is billed twice or left out."""
    row = await visible(work, principal, group_id, Permission.MANAGE)
    try:
        async with work.outside():
            view = await services.coordinator.reset_group(group_id, epoch)
            view = await _until_active(services, view)
    except Refused as error:
        raise Problem(Code.ADMISSION_REFUSED, error.refusal.message, refusal=error.refusal) from error
    except RequestInvalid as error:
        raise Problem(Code.GROUP_NOT_LOST, str(error)) from error
    groups = GroupRepository(work.scope)
    await note(work, group_id, "reset_requested", f"The group {row.name} was to be reset.")
    await groups.observe(view, datetime.now(UTC))
    return await visible(work, principal, group_id)


async def handle(
    work: Work, services: Services, principal: Principal, group_id: UUID, *, only: Permission | None = None
) -> Handle:
    """`only`: for a token with this permission alone, which the caller has."""
    row = await visible(work, principal, group_id)
    if row.status == "deleting":  # not taken back: clients end now, and not after the coordinator's part
        raise not_found("group")
    if await PartitionedRepository(work.scope).get(row.id) is not None:
        partitions = await partitioning.fresh(work, services, row.id)
        return await handles.issue(work, services, principal, row, partitions.partitions[0], partitions, only=only)
    view = await _freshest(work, services, row)
    require_whole(row)
    return await handles.issue(work, services, principal, row, view, only=only)


async def operation_costs(work: Work, services: Services, principal: Principal, group_id: UUID) -> GroupCosts:
    row = await visible(work, principal, group_id)
    view = await _freshest(work, services, row)
    if view.charges is None:
        raise Problem(Code.COORDINATOR_UNAVAILABLE, "The group's costs are not known now.", retry_after_s=2)
    operations = costs.costs(view.sla, view.charges, view.reads)
    return GroupCosts(request_size_bytes=view.sla.request_size_bytes, operations=operations)


async def placement(work: Work, services: Services, principal: Principal, group_id: UUID) -> Placement:
    row = await visible(work, principal, group_id)
    fresh = await _freshest(work, services, row)
    return Placement(
        epoch=fresh.epoch,
        status=fresh.status,
        replicas=[PlacedReplica.of(replica) for replica in fresh.replicas],
        learners=[PlacedReplica.of(replica) for replica in fresh.learners],
        relocation=PlacedRelocation.of(fresh.relocation) if fresh.relocation is not None else None,
        observed_at=row.observed_at,
    )


async def _freshest(work: Work, services: Services, row: Row[Any]) -> GroupView:
    """The coordinator's view now, or its stored view if it does not answer soon."""
    stored = stored_view(row)
    try:
        async with work.outside():
            view = await services.coordinator.group(row.id, timeout_s=limits.COORDINATOR_FRESHNESS_TIMEOUT_S)
    except CoordinatorUnavailable:
        return stored
    return view if view is not None and view.epoch >= stored.epoch else stored


async def events(work: Work, principal: Principal, group_id: UUID, paging: Paging) -> Page[GroupEvent]:
    await visible(work, principal, group_id, deleted=True)
    before = None
    if paging.after is not None:
        microseconds = int.from_bytes(paging.after[:8], "big", signed=True)
        before = (_from_microseconds(microseconds), int.from_bytes(paging.after[8:], "big", signed=True))
    rows = await GroupRepository(work.scope).events(group_id, paging.limit + 1, before)
    rows, cursor = paging.cut(rows, _position)
    return Page(items=[_event(row) for row in rows], next_cursor=cursor)


def etag(row: Row[Any]) -> str:
    return f'"{row.row_version}"'


async def group_of(work: Work, row: Row[Any]) -> Group:
    (group,) = await _groups_of(work, [row])
    return group


async def _groups_of(work: Work, rows: list[Row[Any]]) -> list[Group]:
    wholes = await PartitionedRepository(work.scope).wholes(row.id for row in rows)
    return [_shown(row, wholes.get(row.id)) for row in rows]


def _shown(row: Row[Any], whole: Whole | None) -> Group:
    sla = ObservedSla(**(whole.sla if whole is not None else row.sla))
    availability_ppm = whole.availability_ppm if whole is not None else row.availability_ppm
    return Group(
        id=row.id,
        project_id=row.project_id,
        name=row.name,
        sla=sla,
        partitions=whole.partitions if whole is not None else 1,
        partition_of=row.partition_of,
        partition=row.partition,
        promise=SlaPromise.of(sla, availability_ppm),
        deletion_protection=row.deletion_protection,
        status=row.status if whole is None else _worst(row.status, whole.statuses),
        access=row.access,
        epoch=row.epoch,
        price=Price(**(whole.price if whole is not None else row.price)),
        resizing=_asked_resize(row) if whole is None else None,
        created_at=row.created_at,
        observed_at=row.observed_at,
    )


def _asked_resize(row: Row[Any]) -> AskedResize | None:
    return AskedResize(sla=row.resize["sla"], price=row.resize["price"]) if row.resize is not None else None


# From bad to good. A group is as well as the worst of its partitions.
_STATUSES: tuple[Status, ...] = ("lost", "paused", "degraded", "provisioning", "active")


def _worst(own: Status, statuses: list[str]) -> Status:
    return own if own in ("deleting", "deleted") else next((one for one in _STATUSES if one in statuses), own)


async def note(work: Work, group_id: UUID, kind: str, message: str) -> None:
    """Record an event of the API's own. Its negative number never equals one of the coordinator's."""
    seq = -time.time_ns() // 1_000
    await GroupRepository(work.scope).add_event(
        group_id=group_id, seq=seq, at=datetime.now(UTC), kind=kind, message=message
    )


def _event(row: Row[Any]) -> GroupEvent:
    return GroupEvent(
        id=str(row.seq),
        at=row.at,
        kind=row.kind,
        message=row.message,
        epoch=row.epoch,
        status=row.status,
        server_id=row.server_id,
    )


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _position(event: Row[Any]) -> bytes:
    at_us, seq = _microseconds(event.at), int(event.seq)
    return at_us.to_bytes(8, "big", signed=True) + seq.to_bytes(8, "big", signed=True)


def _microseconds(at: datetime) -> int:
    since = at - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _from_microseconds(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)
