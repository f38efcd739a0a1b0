"""Usage that does not count: kept for people with its reason, once however often it is read."""

from datetime import UTC, datetime

import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api.observability import counters
from quorate_api.telemetry.records import Rejected
from quorate_api.worker.repository import WorkerRepository

log = structlog.get_logger(__name__)


async def keep(engine: AsyncEngine, rejected: list[Rejected]) -> None:
    """Those that are new are counted for the alert, once they are stored. The log has one line of a batch."""
    if not rejected:
        return
    async with engine.begin() as connection:
        new = await WorkerRepository(connection).keep_rejected(rejected, datetime.now(UTC))
    if new:
        counters.usage_rejected.add(new)
        log.error("usage rejected", new=new, first=rejected[0].entry_id, reason=rejected[0].reason)
