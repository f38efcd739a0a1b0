"""Usage that does not count: kept for people with its reason, once however often it is read."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from quorate_api.observability import counters
from quorate_api.telemetry.records import Rejected
from quorate_api.worker.repository import WorkerRepository

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Reject:
    entry_id: str
    rejected: Rejected


async def keep(connection: AsyncConnection, rejects: Iterable[Reject]) -> None:
    """Those that are new are counted for the alert. The log has one line of a batch: the table has all of it."""
    repository, now = WorkerRepository(connection), datetime.now(UTC)
    new = [one for one in rejects if await repository.keep_rejected(one.entry_id, one.rejected, now)]
    if new:
        counters.usage_rejected.add(len(new))
        log.error("usage rejected", count=len(new), entry=new[0].entry_id, reason=new[0].rejected.reason)
