"""Names of an organization's projects, for spend. Costs come from `billing.account` and `totals`."""

from uuid import UUID

from quorate_api.database.scope import Scope
from quorate_api.database.tables import projects


class SpendRepository:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def project_names(self) -> dict[UUID, str]:
        """Deleted projects count too: their last days cost something."""
        statement = self._scope.select(projects, projects.c.id, projects.c.name)
        return {row.id: row.name for row in (await self._scope.connection.execute(statement)).all()}
