"""Events of organizations. Each is stored once, by its type and key."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from quorate_api.database.ids import new_id
from quorate_api.database.scope import EveryOrganization, Scope
from quorate_api.database.tables import events
from quorate_api.events.catalogue import Data, EventType

_EVENTS = events.c


class EventRepository:
    def __init__(self, scope: Scope | EveryOrganization) -> None:
        self._scope = scope

    async def add(
        self,
        organization_id: UUID,
        kind: EventType,
        key: str,
        data: Data,
        at: datetime,
        for_webhook_id: UUID | None = None,
    ) -> None:
        """`key`: of all events of this type, the one that this is. A repetition changes nothing."""
        assert isinstance(self._scope, EveryOrganization) or self._scope.organization_id == organization_id
        values = {
            "id": new_id(),
            "organization_id": organization_id,
            "type": kind.value,
            "key": key,
            "at": at,
            "data": data.model_dump(mode="json"),
            "for_webhook_id": for_webhook_id,
        }
        statement = self._scope.upsert(events).values(values).on_conflict_do_nothing()
        await self._scope.connection.execute(statement)

    async def page(self, limit: int, before: int | None, kind: str | None) -> list[Row[Any]]:
        """Newest first."""
        statement = self._scope.select(events).order_by(_EVENTS.seq.desc()).limit(limit)
        if before is not None:
            statement = statement.where(_EVENTS.seq < before)
        if kind is not None:
            statement = statement.where(_EVENTS.type == kind)
        return list((await self._scope.connection.execute(statement)).all())

    async def of_key(self, kind: EventType, key: str) -> Row[Any]:
        statement = self._scope.select(events).where(_EVENTS.type == kind.value, _EVENTS.key == key)
        return (await self._scope.connection.execute(statement)).one()

    async def forget(self, before: datetime) -> int:
        """With their deliveries. Returns their number."""
        assert isinstance(self._scope, EveryOrganization)
        statement = self._scope.delete(events).where(_EVENTS.at < before)
        return int((await self._scope.connection.execute(statement)).rowcount)
