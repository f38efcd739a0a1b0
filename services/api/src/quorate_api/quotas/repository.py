"""Limits that differ from the defaults for one organization."""

from quorate_api.database.scope import Scope
from quorate_api.database.tables import quota_overrides


class QuotaRepository:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def overrides(self) -> dict[str, int]:
        rows = (await self._scope.connection.execute(self._scope.select(quota_overrides))).all()
        return {row.code: row.limit_value for row in rows}
