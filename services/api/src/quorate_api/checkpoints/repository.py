"""Checkpoints of consumers, within one organization."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, func

from quorate_api.database.scope import Scope
from quorate_api.database.tables import checkpoints


class CheckpointRepository:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def of_group(self, group_id: UUID, consumer: str | None = None) -> list[Row[Any]]:
        """By consumer, then by partition."""
        rows = checkpoints.c
        statement = self._scope.select(checkpoints).where(rows.group_id == group_id)
        if consumer is not None:
            statement = statement.where(rows.consumer == consumer)
        found = await self._scope.connection.execute(statement.order_by(rows.consumer, rows.partition))
        return list(found.all())

    async def consumers(self, group_id: UUID) -> int:
        rows = checkpoints.c
        statement = self._scope.select(checkpoints, func.count(rows.consumer.distinct()))
        return int((await self._scope.connection.execute(statement.where(rows.group_id == group_id))).scalar_one())

    async def save(
        self, group_id: UUID, consumer: str, offsets: Sequence[tuple[int, int]], now: datetime, *, rewind: bool
    ) -> None:
        """`offsets`: partitions with offsets, in order. Lower ones than before are ignored unless `rewind`."""
        statement = self._scope.upsert(checkpoints, group_id=group_id, consumer=consumer, updated_at=now)
        found = statement.excluded
        statement = statement.on_conflict_do_update(
            index_elements=[checkpoints.c.group_id, checkpoints.c.consumer, checkpoints.c.partition],
            set_={"next_offset": found.next_offset, "updated_at": now},
            where=None if rewind else found.next_offset > checkpoints.c.next_offset,
        )
        rows = [{"partition": partition, "next_offset": next_offset} for partition, next_offset in offsets]
        await self._scope.connection.execute(statement, rows)

    async def delete(self, group_id: UUID, consumer: str) -> None:
        rows = checkpoints.c
        statement = self._scope.delete(checkpoints).where(rows.group_id == group_id, rows.consumer == consumer)
        await self._scope.connection.execute(statement)
