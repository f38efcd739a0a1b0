"""The doctor's looks into the database."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import ARRAY, Text, column, func, literal, select, table
from sqlalchemy.ext.asyncio import AsyncConnection

from quorate_api.database.scope import EveryOrganization
from quorate_api.database.tables import OWNED, groups

_CLASSES = table("pg_class", column("relname"), column("relkind"), column("relrowsecurity"))


class DoctorRepository:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection
        self._scope = EveryOrganization(connection, "the doctor compares the database with the fleet")

    async def look(self) -> tuple[datetime, list[str]]:
        """The server's time, and owned tables without row-level security."""
        now = (await self._connection.execute(select(func.clock_timestamp()))).scalar_one()
        owned = literal(sorted(OWNED), ARRAY(Text))
        statement = select(_CLASSES.c.relname).where(
            _CLASSES.c.relname == func.any(owned), ~_CLASSES.c.relrowsecurity, _CLASSES.c.relkind.in_(("r", "p"))
        )
        return now, sorted((await self._connection.execute(statement)).scalars())

    async def groups(self) -> set[UUID]:
        """Groups that the coordinator is to have."""
        statement = self._scope.select(groups, groups.c.id).where(
            groups.c.status.not_in(("provisioning", "deleting", "deleted")), groups.c.deleted_at.is_(None)
        )
        return set((await self._connection.execute(statement)).scalars())
