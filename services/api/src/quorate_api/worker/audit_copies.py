"""(m) Audit events are copied into a group of Quorate's own, where the database's owner cannot change them."""

import asyncio
from dataclasses import dataclass, field

from quorate import Client
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.audit import copies
from quorate_api.audit.group import AWAY, AuditGroup
from quorate_api.audit.repository import CopyRepository
from quorate_api.database.scope import EveryOrganization

REASON = "audit logs of all organizations are copied alike"


@dataclass(slots=True)
class Copier:
    """Several workers may run it: one of them copies at a time, so that a log's events keep their order. A crash may
    copy one twice, and loses none."""

    engine: AsyncEngine
    group: AuditGroup
    _client: Client | None = field(default=None, init=False)

    async def run(self) -> int:
        """One pass. Returns the number of events that were copied. Raises `OSError` while the group is away."""
        copied = 0
        try:
            while number := await self._copy():
                copied += number
        except AWAY as error:
            await self.aclose()
            raise OSError(f"the group for audit logs: {error}") from None
        return copied

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close(drain=False)

    async def _copy(self) -> int:
        async with self.engine.begin() as connection:
            repository = CopyRepository(EveryOrganization(connection, REASON))
            if not await repository.take_turn():
                return 0
            names = await repository.waiting(limits.AUDIT_COPIES_AT_ONCE)
            if not names:
                return 0
            events = await repository.named(names)
            if self._client is None:
                self._client = await self.group.connect()
            await asyncio.gather(*(self._client.append(copies.as_entry(each)) for each in events))
            # An erased organization's events are gone, and need no copy.
            await repository.forget(names)
        return len(names)
