"""(a) Usage: from the Redis stream into `usage_windows`, read at least once, counted once.

Reading is by consumer group. An entry is acknowledged after its transaction has committed, so a crash between the two
repeats the read. That is harmless, because the upsert keeps the greatest of every counter.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import structlog
from redis.asyncio import Redis
from redis.exceptions import ResponseError
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.database.scope import EveryOrganization
from quorate_api.observability import counters
from quorate_api.telemetry.records import windows_of
from quorate_api.telemetry.windows import Window, merged
from quorate_api.usage.repository import UsageRepository

log = structlog.get_logger(__name__)

STREAM = "quorate:usage"
GROUP = "quorate-worker"
REJECTED = "quorate:usage:rejected"
BACKLOG_COUNTED_MAX = 10_000

StreamEntry = tuple[bytes, dict[bytes, bytes] | None]


@dataclass(slots=True)
class Ingest:
    """One consumer. `name` should stay the same over restarts, so that it finds its own unacknowledged entries."""

    redis: Redis
    engine: AsyncEngine
    name: str
    _recovered: bool = False

    async def prepare(self) -> None:
        """Create the consumer group at the stream's beginning: entries sent before count too."""
        try:
            await self.redis.xgroup_create(STREAM, GROUP, id="0", mkstream=True)
        except ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise

    async def run(self) -> None:
        """Ingest for ever. Errors of Redis and PostgreSQL reach the caller, who waits and calls again."""
        self._recovered = False
        await self.prepare()
        while True:
            await self.step(limits.INGEST_BLOCK_MS)

    async def step(self, block_ms: int) -> int:
        """One batch: own unacknowledged entries first, then those of dead consumers, then new ones."""
        entries = await self._next(block_ms)
        if not entries:
            return 0
        await self.store(entries)
        await self.redis.xack(STREAM, GROUP, *[entry_id for entry_id, _ in entries])
        return len(entries)

    async def store(self, entries: list[StreamEntry]) -> None:
        """Store the batch in one transaction."""
        windows: list[Window] = []
        for entry_id, fields in entries:
            try:
                windows += windows_of((fields or {})[b"d"])
            except (KeyError, ValueError) as error:
                if fields is not None:  # None: trimmed before it was read again
                    await self._reject(entry_id, fields, error)
        if not windows:
            return
        async with self.engine.begin() as connection:
            scope = EveryOrganization(connection, "servers report all their groups in one entry")
            repository = UsageRepository(scope)
            organizations = await repository.organizations_of({UUID(window.group_id) for window in windows})
            known = [window for window in windows if UUID(window.group_id) in organizations]
            if len(known) < len(windows):
                # Intent is stored before placement, so these belong to no customer (a refused intent, a test).
                unknown = sorted({window.group_id for window in windows} - {str(known) for known in organizations})
                log.warning("usage of unknown groups", groups=unknown[:10], count=len(unknown))
            await repository.upsert(merged(known), organizations)

    async def backlog(self) -> int:
        """Number of entries that are not stored yet: unread ones, and unacknowledged ones."""
        groups: Any = await self.redis.xinfo_groups(STREAM)
        own = next(group for group in groups if group["name"] == GROUP.encode())
        unread = own.get("lag")
        if unread is None:  # Redis before 7, or after some trims, does not know it: count the entries
            after = await self.redis.xrange(STREAM, min=b"(" + own["last-delivered-id"], count=BACKLOG_COUNTED_MAX)
            unread = len(after or [])
        return int(own["pending"]) + int(unread)

    async def _next(self, block_ms: int) -> list[StreamEntry]:
        if not self._recovered:
            pending = await self._read("0", None)
            if pending:
                return pending
            self._recovered = True
        claimed = await self.redis.xautoclaim(
            STREAM, GROUP, self.name, limits.INGEST_CLAIM_IDLE_MS, start_id="0-0", count=limits.INGEST_BATCH_ENTRIES
        )
        if claimed[1]:
            return list(claimed[1])
        return await self._read(">", block_ms)

    async def _read(self, after: str, block_ms: int | None) -> list[StreamEntry]:
        answer: Any = await self.redis.xreadgroup(
            GROUP, self.name, {STREAM: after}, count=limits.INGEST_BATCH_ENTRIES, block=block_ms
        )
        return list(answer[0][1]) if answer else []

    async def _reject(self, entry_id: bytes, fields: dict[bytes, bytes], error: Exception) -> None:
        """Set the entry aside for people, so that it does not block the others."""
        counters.usage_rejected.add(1)
        log.error("a usage entry does not follow the contract", entry=entry_id.decode(), error=str(error)[:500])
        kept: Any = {b"id": entry_id, **fields}
        await self.redis.xadd(REJECTED, kept, maxlen=limits.INGEST_REJECTED_MAXLEN, approximate=False)
