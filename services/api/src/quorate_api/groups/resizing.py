"""Changing a group's SLA in three steps: store the request, ask the coordinator, store the outcome.

When the coordinator's answer is lost, or replicas move before the SLA begins, the request stays, and the next resize or
the worker asks again. The coordinator applies each revision of an SLA once. The new price begins at the time at which
it did.
"""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from quorate_api.access.permissions import Permission
from quorate_api.admission import service as admission
from quorate_api.coordinator.client import CoordinatorUnavailable, Refused, RequestInvalid
from quorate_api.coordinator.schemas import ObservedSla
from quorate_api.database.work import Work
from quorate_api.errors import Code, FieldError, Problem, not_found
from quorate_api.groups import partitioning, service
from quorate_api.groups.repository import GroupRepository
from quorate_api.groups.schemas import Resize
from quorate_api.http.principal import Principal
from quorate_api.http.services import Services
from quorate_api.partitioned.repository import PartitionedRepository
from quorate_api.pricing import prices
from quorate_api.pricing.reservation import price_of
from quorate_api.quotas import service as quotas


async def resize(
    work: Work, services: Services, principal: Principal, group_id: UUID, asked: Resize, if_match: str | None
) -> Row[Any]:
    row = await service.visible(work, principal, group_id, Permission.MANAGE)
    service.require_whole(row)
    service.require_unchanged(row, if_match)
    partitioned = await PartitionedRepository(work.scope).get(row.id)
    if partitioned is not None or (asked.partitions or 1) > 1:
        return await _change_partitions(work, services, principal, row, asked)
    if row.resize is not None:
        await _settle(work, services, row)
        row = await service.visible(work, principal, group_id)
    _require_settled(row)
    sla = _wanted(row.sla, asked)
    if sla == ObservedSla(**(row.resize or {"sla": row.sla})["sla"]):
        return row
    quote = await admission.quote(work, services, sla, group_id)
    if not quote.admissible:
        raise admission.refused(quote)
    await quotas.lock(work)
    now = await service.visible(work, principal, group_id)
    if (now.sla_revision, now.resize) != (row.sla_revision, row.resize):
        raise Problem(Code.PRECONDITION_FAILED, "Another request resized the group meanwhile.")
    _require_settled(now)
    if sla.rate_per_s > row.rate_per_s:
        await quotas.check(work, quotas.TOTAL_RATE, adding=sla.rate_per_s - row.rate_per_s)
    more_reads_per_s = sla.read_rate_per_s - row.sla.get("read_rate_per_s", 0)
    if more_reads_per_s > 0:
        await quotas.check(work, quotas.TOTAL_READ_RATE, adding=more_reads_per_s)
    price = price_of(quote.total_demand, prices.at(datetime.now(UTC)))
    await services.require_spend_room(work, row.project_id, price.hourly_micros - row.hourly_micros)
    wanted = {
        "revision": (row.resize or {"revision": row.sla_revision})["revision"] + 1,
        "sla": sla.model_dump(mode="json"),
        "demand": quote.total_demand.model_dump(),
        "price": price.model_dump(),
    }
    if row.resize is not None:  # its replicas have yet to move
        wanted["before"] = {name: value for name, value in row.resize.items() if name != "before"}
    await GroupRepository(work.scope).begin_resize(group_id, wanted)
    reads = f" and {sla.read_rate_per_s} reads/s" if sla.read_rate_per_s else ""
    rates = f"{sla.rate_per_s} appends/s{reads} of {sla.request_size_bytes} bytes"
    message = f"The group {row.name} was to be resized: {rates}."
    await service.note(work, group_id, "resize_requested", message)
    await _settle(work, services, await service.visible(work, principal, group_id), is_first=True)
    return await service.visible(work, principal, group_id)


def _require_settled(row: Row[Any]) -> None:
    if row.status == "deleting":
        raise not_found("group")
    if row.status == "provisioning":
        raise Problem(Code.GROUP_NOT_READY, "The group is not placed yet.", retry_after_s=1)


def _wanted(present: dict[str, Any], asked: Resize) -> ObservedSla:
    sla = ObservedSla(**{**present, **asked.changes()})
    if sla.min_replicas is not None and sla.min_replicas > sla.replication_degree:
        message = "min_replicas must be at most replication_degree"
        raise Problem(Code.VALIDATION_FAILED, errors=[FieldError(field="min_replicas", message=message)])
    return sla


async def _change_partitions(
    work: Work, services: Services, principal: Principal, row: Row[Any], asked: Resize
) -> Row[Any]:
    """Another SLA for all partitions together, or more of them."""
    repository = PartitionedRepository(work.scope)
    partitioned = await repository.get(row.id)
    if partitioned is not None and partitioned.wanted is not None:
        await partitioning.settle(work, services, row.id, row.project_id)
        partitioned = await repository.get(row.id)
    elif row.resize is not None:
        await _settle(work, services, row)
    row = await service.visible(work, principal, row.id)
    _require_settled(row)
    if partitioned is None and row.resize is not None:
        message = "Replicas of the group move for a resize: add partitions once it has begun, or call it off."
        raise Problem(Code.GROUP_NOT_READY, message, retry_after_s=5)
    present = await repository.members(row.id)
    had = partitioned.sla if partitioned is not None else row.sla
    sla, count = _wanted(had, asked), asked.partitions or len(present)
    _require_growth(row.name, len(present), count)
    if sla == ObservedSla(**had) and count == len(present):
        return row
    quote = await admission.quote(work, services, sla, row.id, partitions=count)
    if not quote.admissible:
        raise admission.refused(quote)
    await quotas.lock(work)
    now = await repository.get(row.id)
    if (now.revision if now is not None else 0) != (partitioned.revision if partitioned is not None else 0):
        raise Problem(Code.PRECONDITION_FAILED, "Another request changed the group meanwhile.")
    row = await service.visible(work, principal, row.id)  # it may have another name meanwhile
    added = count - len(present)
    if added > 0:
        await quotas.check(work, quotas.PARTITIONS_PER_PROJECT, adding=added, project_id=row.project_id)
    if (more_per_s := sla.rate_per_s - int(had["rate_per_s"])) > 0:
        await quotas.check(work, quotas.TOTAL_RATE, adding=more_per_s)
    if (more_reads_per_s := sla.read_rate_per_s - had.get("read_rate_per_s", 0)) > 0:
        await quotas.check(work, quotas.TOTAL_READ_RATE, adding=more_reads_per_s)
    parts = partitioning.parts_of(quote, sla)
    each = partitioning.prices_of(parts)
    more_micros = sum(price.hourly_micros for price in each) - sum(member.hourly_micros for member in present)
    await services.require_spend_room(work, row.project_id, more_micros)
    for member, part, price in zip(present, parts, each, strict=False):
        wanted = {
            "revision": member.sla_revision + 1,
            "sla": part.sla.model_dump(mode="json"),
            "demand": part.demand.model_dump(),
            "price": price.model_dump(),
        }
        await GroupRepository(work.scope).begin_resize(member.id, wanted)
    new = await partitioning.insert(work, row.id, row.project_id, row.name, parts, first=len(present))
    if new is None:
        message = f"A group of the project has the name of a partition, as in {row.name}/{len(present)}."
        raise Problem(Code.NAME_TAKEN, errors=[FieldError(field="partitions", message=message)])
    revision = (partitioned.revision if partitioned is not None else 0) + 1
    await partitioning.begin(work, row.id, sla, [*(member.id for member in present), *new], parts, revision)
    message = f"The group {row.name} was to have {count} partitions with {sla.rate_per_s} appends/s in all."
    await service.note(work, row.id, "resize_requested", message)
    await partitioning.settle(work, services, row.id, row.project_id, is_first=True)
    return await service.visible(work, principal, row.id)


def _require_growth(name: str, present: int, count: int) -> None:
    if count < present:
        message = f"The group has {present} partitions, and they are never removed: their logs would be lost."
        raise Problem(Code.VALIDATION_FAILED, errors=[FieldError(field="partitions", message=message)])
    if count > present:
        partitioning.check_name(name, count)


async def _settle(work: Work, services: Services, row: Row[Any], *, is_first: bool = False) -> None:
    """Ask the coordinator for the stored request, and store the outcome, if it has come to one. `is_first`: it was not
    asked before, so that a request which did not reach it has not happened."""
    revision, groups = int(row.resize["revision"]), GroupRepository(work.scope)
    try:
        async with work.outside():
            view = await services.coordinator.resize_group(row.id, ObservedSla(**row.resize["sla"]), revision)
    except Refused as error:
        await _call_off(work, row.id, revision)
        raise Problem(Code.ADMISSION_REFUSED, error.refusal.message, refusal=error.refusal) from error
    except RequestInvalid as error:
        await _call_off(work, row.id, revision)
        raise Problem(Code.GROUP_LOST) if error.code == "group_lost" else admission.invalid_sla(error) from error
    except CoordinatorUnavailable as error:
        if is_first and not error.sent:
            await _call_off(work, row.id, revision)
        raise
    if view is None:
        await _call_off(work, row.id, revision)
        raise not_found("group")
    if not view.awaits(revision):
        await groups.finish_resize(row.id, revision, view.sla_since or datetime.now(UTC))
    await groups.observe(view, datetime.now(UTC))


async def _call_off(work: Work, group_id: UUID, revision: int) -> None:
    await GroupRepository(work.scope).call_off_resize(group_id, revision)
    await work.checkpoint()
