"""(i) Revoked credentials: the coordinator, and through it every server, refuses their tokens within seconds."""

from dataclasses import dataclass
from datetime import UTC, datetime

import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.coordinator.client import Coordinator, RequestInvalid
from quorate_api.credentials.repository import RevocationRepository
from quorate_api.database.scope import EveryOrganization

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Revoker:
    """Several workers may run it at once: telling the same again changes nothing."""

    engine: AsyncEngine
    coordinator: Coordinator

    async def run(self) -> int:
        """One pass. Returns the number of credentials of which the coordinator was told."""
        told = 0
        while more := await self._tell(datetime.now(UTC)):
            told += more
        return told

    async def _tell(self, now: datetime) -> int:
        every = "credentials of all organizations end alike"
        async with self.engine.begin() as connection:
            repository = RevocationRepository(EveryOrganization(connection, every))
            await repository.forget_expired(now)
            rows = await repository.untold(now, limits.REVOCATIONS_PER_CALL_MAX)
        if not rows:
            return 0
        try:
            await self.coordinator.revoke([(row.credential_id, row.until) for row in rows])
        except RequestInvalid as error:
            # Tokens of the credentials then work until they expire; the next pass tries again.
            log.error("credentials could not be revoked", count=len(rows), why=str(error))
            return 0
        async with self.engine.begin() as connection:
            repository = RevocationRepository(EveryOrganization(connection, every))
            await repository.note_told([row.credential_id for row in rows], now)
        slowest_s = max((now - row.revoked_at).total_seconds() for row in rows)
        log.info("credentials revoked", count=len(rows), slowest_s=round(slowest_s, 1))
        return len(rows)
