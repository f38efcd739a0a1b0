"""Groups with partitions: asking the coordinator for what was stored, and storing its answer.

A change of partitions is one request to the coordinator, which carries it out as a whole or refuses it. When its answer
is lost, the request stays, and the next change or the worker asks again.
"""

import asyncio
import time
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from quorate_api import limits
from quorate_api.admission import service as admission
from quorate_api.coordinator.client import CoordinatorUnavailable, Refused, RequestInvalid
from quorate_api.coordinator.schemas import LayoutChange, ObservedSla, PartDemand, PartitionsView, Quote
from quorate_api.database.ids import new_id
from quorate_api.database.work import Work
from quorate_api.errors import Code, FieldError, Problem
from quorate_api.groups import partition_outcomes
from quorate_api.groups.handles import KEY_HASH
from quorate_api.groups.repository import GroupRepository
from quorate_api.groups.schemas import GroupPartitions, PlacedPartition, PlacedRelocation, PlacedReplica
from quorate_api.groups.views import stored_view
from quorate_api.http.services import Services
from quorate_api.partitioned.repository import PartitionedRepository
from quorate_api.pricing import prices
from quorate_api.pricing.reservation import price_of, sum_of
from quorate_api.pricing.schemas import Price

USABLE_WAIT_S = 3.0  # bound on a wait until clients may use all partitions
USABLE_POLL_S = 0.05
BUSY = ("partition_not_ready", "partitions_growing", "group_quarantined")


def check_name(name: str, partitions: int) -> None:
    """Raises `validation_failed` where the names of partitions, as in `orders/3`, would be too long."""
    longest = limits.NAME_LENGTH_MAX - len(f"/{limits.PARTITIONS_MAX - 1}")
    if partitions > 1 and len(name) > longest:
        message = f"Must have at most {longest} characters: partitions are called {name[:8]}…/1 and so on."
        raise Problem(Code.VALIDATION_FAILED, errors=[FieldError(field="name", message=message)])


def name_of(name: str, number: int) -> str:
    """The name of a partition: the first one has its group's."""
    return name if number == 0 else f"{name}/{number}"


def names(name: str, partitions: int) -> list[str]:
    """All names of a group with so many partitions."""
    return [name_of(name, number) for number in range(max(partitions, 1))]


def parts_of(quote: Quote, sla: ObservedSla) -> list[PartDemand]:
    """The parts of the SLA, one for each partition."""
    return quote.parts or [PartDemand(sla=sla, demand=quote.total_demand)]


def prices_of(parts: list[PartDemand]) -> list[Price]:
    price_list = prices.at(datetime.now(UTC))
    return [price_of(part.demand, price_list) for part in parts]


async def insert(
    work: Work, group_id: UUID, project_id: UUID, name: str, parts: list[PartDemand], *, first: int
) -> list[UUID] | None:
    """Store the partitions from number `first` on, as intents. Returns their ids; None: a name is taken."""
    ids = [group_id if number == 0 else new_id() for number in range(first, len(parts))]
    now, each = datetime.now(UTC), prices_of(parts)
    for number, partition_id in enumerate(ids, first):
        part, price = parts[number], each[number]
        stored = await GroupRepository(work.scope).insert(
            id=partition_id,
            project_id=project_id,
            name=name_of(name, number),
            sla=part.sla.model_dump(mode="json"),
            demand=part.demand.model_dump(),
            price=price.model_dump(),
            hourly_micros=price.hourly_micros,
            rate_per_s=part.sla.rate_per_s,
            created_at=now,
            status="provisioning",
            epoch=0,
            replicas=[],
            learners=[],
            row_version=1,
            partition_of=None if number == 0 else group_id,
            partition=None if number == 0 else number,
        )
        if not stored:
            return None
    return ids


async def begin(
    work: Work, group_id: UUID, sla: ObservedSla, ids: list[UUID], parts: list[PartDemand], revision: int
) -> None:
    """Store the request of a change of partitions."""
    wanted = {
        "revision": revision,
        "sla": sla.model_dump(mode="json"),
        "price": sum_of(prices_of(parts)).model_dump(),
        "partitions": [str(partition_id) for partition_id in ids],
    }
    await PartitionedRepository(work.scope).begin(group_id, wanted, datetime.now(UTC))


async def settle(
    work: Work, services: Services, group_id: UUID, project_id: UUID, *, is_first: bool = False
) -> PartitionsView:
    """Ask the coordinator for the stored request, if there is one, and store the outcome. `is_first`: it was not asked
    before, so that a request which did not reach it has not happened."""
    row = await PartitionedRepository(work.scope).get(group_id)
    if row is None:
        raise Problem(Code.PARTITIONS_BUSY, "The group's partitions were called off meanwhile.")
    if row.wanted is None:
        return await fresh(work, services, group_id)
    wanted = row.wanted
    ids = [UUID(partition_id) for partition_id in wanted["partitions"]]
    try:
        async with work.outside():
            view = await services.coordinator.set_partitions(
                group_id, project_id, ObservedSla(**wanted["sla"]), ids, wanted["revision"]
            )
            view = await _until_usable(services, view)
    except Refused as error:
        await _call_off(work, group_id)
        raise Problem(Code.ADMISSION_REFUSED, error.refusal.message, refusal=error.refusal) from error
    except RequestInvalid as error:
        await _call_off(work, group_id)
        if error.code in BUSY:
            raise Problem(Code.PARTITIONS_BUSY, str(error), retry_after_s=2) from error
        raise admission.invalid_sla(error) from error
    except CoordinatorUnavailable as error:
        if is_first and not error.sent:
            await _call_off(work, group_id)
        raise
    await partition_outcomes.store(work.scope, view, datetime.now(UTC))
    return view


async def _until_usable(services: Services, view: PartitionsView) -> PartitionsView:
    """Give the partitions a moment, so that a customer's first append succeeds."""
    deadline = time.monotonic() + USABLE_WAIT_S
    while not is_usable(view) and time.monotonic() < deadline:
        await asyncio.sleep(USABLE_POLL_S)
        try:
            newer = await services.coordinator.partitions(view.group_id, timeout_s=1.0)
        except CoordinatorUnavailable:
            return view  # they are admitted; the worker observes their status later
        view = newer or view
    return view


def is_usable(view: PartitionsView) -> bool:
    return view.in_use == len(view.partitions) and all(part.status != "provisioning" for part in view.partitions)


async def _call_off(work: Work, group_id: UUID) -> None:
    await partition_outcomes.call_off(work.scope, group_id)
    await work.checkpoint()


async def fresh(work: Work, services: Services, group_id: UUID) -> PartitionsView:
    """The coordinator's view of the partitions now, or the stored one if it does not answer soon."""
    row = await PartitionedRepository(work.scope).get(group_id)
    assert row is not None, "the caller has found it"
    try:
        async with work.outside():
            view = await services.coordinator.partitions(group_id, timeout_s=limits.COORDINATOR_FRESHNESS_TIMEOUT_S)
    except CoordinatorUnavailable:
        view = None
    if view is None:
        return await _stored(work, row)
    await PartitionedRepository(work.scope).observe(view)
    return view


async def _stored(work: Work, row: Row[Any]) -> PartitionsView:
    members = await PartitionedRepository(work.scope).members(row.group_id)
    return PartitionsView(
        group_id=row.group_id,
        sla=ObservedSla(**(row.sla or row.wanted["sla"])),
        revision=row.revision,
        since=row.requested_at,
        layout=row.layout,
        in_use=row.in_use,
        changes=[LayoutChange.model_validate(change) for change in row.changes],
        partitions=[stored_view(member) for member in members],
    )


async def shown(work: Work, services: Services, group: Row[Any]) -> GroupPartitions:
    """The group's partitions; one without has a single one, which is the group itself."""
    row = await PartitionedRepository(work.scope).get(group.id)
    members = await PartitionedRepository(work.scope).members(group.id)
    by_id = {member.id: member for member in members}
    view = await fresh(work, services, group.id) if row is not None else None
    parts = view.partitions if view is not None else [stored_view(group)]
    in_use = view.in_use if view is not None else 1
    wanted = view.wanted_per_s if view is not None else []
    return GroupPartitions(
        key_hash=KEY_HASH,
        layout=view.layout if view is not None else 0,
        is_changing=(row is not None and row.wanted is not None) or in_use < len(parts),
        items=[
            PlacedPartition(
                partition=number,
                group_id=part.group_id,
                status=part.status,
                epoch=part.epoch,
                rate_per_s=part.sla.rate_per_s,
                wanted_per_s=wanted[number] if number < len(wanted) else None,
                hourly_micros=by_id[part.group_id].hourly_micros if part.group_id in by_id else 0,
                replicas=[PlacedReplica.of(replica) for replica in part.replicas],
                learners=[PlacedReplica.of(learner) for learner in part.learners],
                relocation=PlacedRelocation.of(part.relocation) if part.relocation is not None else None,
                in_use=number < in_use,
            )
            for number, part in enumerate(parts)
        ],
    )
