"""The outcome of a change of a group's partitions, stored. The API and the worker do this alike."""

from datetime import datetime
from uuid import UUID

from quorate_api.coordinator.schemas import PartitionsView
from quorate_api.database.scope import EveryOrganization, Scope
from quorate_api.groups.repository import GroupRepository
from quorate_api.partitioned.repository import PartitionedRepository


async def store(scope: Scope | EveryOrganization, view: PartitionsView, now: datetime) -> None:
    """The coordinator did as it was asked. A repetition changes nothing."""
    groups, partitioned = GroupRepository(scope), PartitionedRepository(scope)
    for row in await groups.get_many(part.group_id for part in view.partitions):
        if row.resize is not None:
            await groups.finish_resize(row.id, row.resize["revision"], view.since)
    for part in view.partitions:
        await groups.observe(part, now)
    await partitioned.finish(view)


async def call_off(scope: Scope | EveryOrganization, group_id: UUID) -> None:
    """The coordinator refused: partitions that there were stay as they are, and new ones were never admitted."""
    groups, partitioned = GroupRepository(scope), PartitionedRepository(scope)
    members = await partitioned.members(group_id)
    await partitioned.call_off(group_id)
    for row in reversed(members):  # the first is named by the others
        if row.resize is not None:
            await groups.call_off_resize(row.id, row.resize["revision"])
        await groups.forget_intent(row.id)
