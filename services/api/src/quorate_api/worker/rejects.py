"""Usage that does not count: kept for people with its reason, once however often it is read."""

from dataclasses import dataclass
from datetime import UTC, datetime

import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api.observability import counters
from quorate_api.telemetry.records import Rejected
from quorate_api.worker.repository import WorkerRepository

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Reject:
    entry_id: str
    rejected: Rejected


async def keep(engine: AsyncEngine, rejects: list[Reject]) -> None:
    """Those that are new are counted for the alert, once they are stored. The log has one line of a batch."""
    if not rejects:
        return
    async with engine.begin() as connection:
        found = [(one.entry_id, one.rejected) for one in rejects]
        new = await WorkerRepository(connection).keep_rejected(found, datetime.now(UTC))
    if new:
        counters.usage_rejected.add(new)
        first = rejects[0]
        log.error("usage rejected", new=new, first=first.entry_id, reason=first.rejected.reason)
