"""Usage that does not count: kept for people with its reason, once however often it is read."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from quorate_api import limits
from quorate_api.database.tables import rejected_usage
from quorate_api.observability import counters
from quorate_api.telemetry.records import Rejected

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Reject:
    entry_id: str
    rejected: Rejected


async def keep(connection: AsyncConnection, rejects: Iterable[Reject]) -> None:
    """Those that are new are counted for the alert. The log has one line of a batch: the table has all of it."""
    new: list[Reject] = []
    for reject in rejects:
        one = reject.rejected
        values = {
            "entry_id": reject.entry_id,
            "position": one.position,
            "rejected_at": datetime.now(UTC),
            "reason": _text(one.reason)[:1_000],
            "data": _text(one.data)[: limits.INGEST_REJECTED_CHARS_MAX],
        }
        statement = insert(rejected_usage).values(values).on_conflict_do_nothing().returning(rejected_usage.c.position)
        if (await connection.execute(statement)).first() is not None:
            new.append(reject)
    if new:
        counters.usage_rejected.add(len(new))
        first = new[0]
        log.error("usage rejected", count=len(new), entry=first.entry_id, reason=first.rejected.reason)


def _text(anything: str) -> str:
    """PostgreSQL's text holds no zero, and no half of a surrogate pair."""
    return anything.replace("\x00", "\ufffd").encode(errors="replace").decode()
