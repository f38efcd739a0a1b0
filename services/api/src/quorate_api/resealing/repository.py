"""Rows that are sealed with the API's secret, and API keys that are known by it."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

from sqlalchemy import func, or_

from quorate_api.database.scope import EveryOrganization
from quorate_api.database.tables import api_key_secrets, api_keys, metadata

READ_ROWS = 500


class SealedRepository:
    def __init__(self, scope: EveryOrganization) -> None:
        self._scope = scope

    async def rows(self, table_name: str) -> AsyncIterator[list[tuple[UUID, bytes]]]:
        """The key and the sealed value of every row, in parts."""
        table = metadata.tables[table_name]
        (key,) = table.primary_key.columns
        last: Any = None
        while True:
            statement = self._scope.select(table, key, table.c.sealed).order_by(key).limit(READ_ROWS)
            if last is not None:
                statement = statement.where(key > last)
            found = [(row[0], row[1]) for row in (await self._scope.connection.execute(statement)).all()]
            if not found:
                return
            yield found
            last = found[-1][0]

    async def replace(self, table_name: str, key: UUID, former: bytes, sealed: bytes) -> bool:
        """False: somebody has changed it meanwhile."""
        table = metadata.tables[table_name]
        (column,) = table.primary_key.columns
        statement = self._scope.update(table).where(column == key, table.c.sealed == former).values(sealed=sealed)
        return (await self._scope.connection.execute(statement.returning(column))).first() is not None

    async def keys_under_others(self, secret_id: str) -> int:
        """API keys that work, and are known by another secret alone: nobody has used them since it was exchanged."""
        statement = (
            self._scope.select(api_key_secrets, func.count())
            .join(api_keys, api_keys.c.id == api_key_secrets.c.key_id)
            .where(
                api_keys.c.revoked_at.is_(None),
                or_(api_key_secrets.c.ends_at.is_(None), api_key_secrets.c.ends_at > func.now()),
                api_key_secrets.c.under.is_distinct_from(secret_id),
            )
        )
        return int((await self._scope.connection.execute(statement)).scalar_one())
