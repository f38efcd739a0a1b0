"""Replicas on a server. The SQL function called here goes past row-level security."""

from typing import Any
from uuid import UUID

from sqlalchemy import Row, func, select
from sqlalchemy.ext.asyncio import AsyncConnection


class HostedRepository:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def page(self, server_id: int, after: UUID | None, limit: int) -> list[Row[Any]]:
        """Newest groups first. Reads all groups."""
        names = (
            "group_id", "name", "organization_id", "organization_name", "status", "role", "is_learner", "rate_per_s",
            "durability",
        )  # fmt: skip
        found = func.find_replicas(server_id, after, limit).table_valued(*names)
        return list((await self._connection.execute(select(found))).all())
