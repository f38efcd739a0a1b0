"""Checkpoints of consumers. They are stored beside the log, and no entry depends on them."""

from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import groupby
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from quorate_api import limits
from quorate_api.access.permissions import Permission
from quorate_api.checkpoints.repository import CheckpointRepository
from quorate_api.checkpoints.schemas import Checkpoint, Checkpointed, NewCheckpoint
from quorate_api.database.work import Work
from quorate_api.errors import Code, FieldError, Problem
from quorate_api.groups import service as groups
from quorate_api.http.principal import Principal
from quorate_api.partitioned.repository import PartitionedRepository
from quorate_api.quotas import service as quotas


async def save(work: Work, principal: Principal, group_id: UUID, consumer: str, asked: NewCheckpoint) -> Checkpoint:
    row = await groups.visible(work, principal, group_id, Permission.READ)
    groups.require_whole(row)
    members = await PartitionedRepository(work.scope).members(group_id)
    _check(asked, len(members))
    repository = CheckpointRepository(work.scope)
    await quotas.lock(work)
    known = await repository.of_group(group_id, consumer)
    if not known and await repository.consumers(group_id) >= limits.CONSUMERS_PER_GROUP_MAX:
        message = f"The group has checkpoints of {limits.CONSUMERS_PER_GROUP_MAX} consumers; delete one first."
        raise Problem(Code.QUOTA_EXCEEDED, message)
    offsets = sorted((each.partition, each.next_offset) for each in asked.offsets)
    await repository.save(group_id, consumer, offsets, datetime.now(UTC), rewind=asked.rewind)
    return _of(consumer, await repository.of_group(group_id, consumer))


async def get(work: Work, principal: Principal, group_id: UUID, consumer: str) -> Checkpoint:
    """One without offsets, where the consumer has saved none: it begins at the beginning."""
    await _readable(work, principal, group_id)
    return _of(consumer, await CheckpointRepository(work.scope).of_group(group_id, consumer))


async def all_of(work: Work, principal: Principal, group_id: UUID) -> list[Checkpoint]:
    await _readable(work, principal, group_id)
    rows = await CheckpointRepository(work.scope).of_group(group_id)
    return [_of(consumer, found) for consumer, found in groupby(rows, key=lambda row: str(row.consumer))]


async def delete(work: Work, principal: Principal, group_id: UUID, consumer: str) -> None:
    await _readable(work, principal, group_id)
    await CheckpointRepository(work.scope).delete(group_id, consumer)


async def _readable(work: Work, principal: Principal, group_id: UUID) -> None:
    row = await groups.visible(work, principal, group_id, Permission.READ)
    groups.require_whole(row)


def _check(asked: NewCheckpoint, partitions: int) -> None:
    """Raises `validation_failed` where a partition is named twice, or is not there."""
    seen: set[int] = set()
    for number, each in enumerate(asked.offsets):
        message = None
        if each.partition >= partitions:
            message = f"The group has {partitions} partitions, numbered from 0; this checkpoint is of another one."
        elif each.partition in seen:
            message = "The partition is named twice."
        if message is not None:
            raise Problem(
                Code.VALIDATION_FAILED, errors=[FieldError(field=f"offsets.{number}.partition", message=message)]
            )
        seen.add(each.partition)


def _of(consumer: str, rows: Iterable[Row[Any]]) -> Checkpoint:
    offsets = [
        Checkpointed(partition=row.partition, next_offset=row.next_offset, updated_at=row.updated_at) for row in rows
    ]
    return Checkpoint(consumer=consumer, offsets=offsets)
