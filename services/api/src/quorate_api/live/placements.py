"""Placements of groups that are watched."""

from collections.abc import Collection
from uuid import UUID

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api.database.work import Work
from quorate_api.groups.repository import GroupRepository
from quorate_api.telemetry.viewers import Placement


async def read(engine: AsyncEngine, organization_id: UUID, group_ids: Collection[UUID]) -> dict[UUID, Placement]:
    """The placements of those of the organization's groups that are still there, in one query."""
    async with Work(engine) as work:
        await work.enter(organization_id)
        rows = await GroupRepository(work.scope).get_many(group_ids)
    return {row.id: _shown(row) for row in rows}


def _shown(row: Row[tuple[object, ...]]) -> Placement:
    return {"epoch": row.epoch, "status": row.status, "replicas": row.replicas, "learners": row.learners}
