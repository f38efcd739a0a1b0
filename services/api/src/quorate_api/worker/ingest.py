"""(a) Usage: from the Redis stream into `usage_windows`, as often as it takes, counted once.

Reading is by consumer group: an entry is acknowledged only after the transaction that holds it has committed, so a
crash between the two means that it is read again — harmless, for the upsert keeps the greatest of every counter.
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
        """Make the consumer group, from the stream's beginning: what was sent before us counts too."""
        try:
            await self.redis.xgroup_create(STREAM, GROUP, id="0", mkstream=True)
        except ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise

    async def run(self) -> None:
        """Forever; raises what Redis and PostgreSQL raise. The caller waits and calls again."""
        self._recovered = False
        await self.prepare()
        while True:
            await self.step(limits.INGEST_BLOCK_MS)

    async def step(self, block_ms: int) -> int:
        """One batch: own unacknowledged entries first, then those of consumers that died, then new ones."""
        entries = await self._next(block_ms)
        if not entries:
            return 0
        await self.store(entries)
        await self.redis.xack(STREAM, GROUP, *[entry_id for entry_id, _ in entries])
        return len(entries)

    async def store(self, entries: list[StreamEntry]) -> None:
        """One transaction for the batch."""
        windows: list[Window] = []
        for entry_id, fields in entries:
            try:
                windows += windows_of((fields or {})[b"d"])
            except (KeyError, ValueError) as error:
                if fields is not None:  # None: trimmed away before it was read again
                    await self._reject(entry_id, fields, error)
        if not windows:
            return
        async with self.engine.begin() as connection:
            scope = EveryOrganization(connection, "servers report all their groups in one entry")
            repository = UsageRepository(scope)
            organizations = await repository.organizations_of({UUID(window.group_id) for window in windows})
            known = [window for window in windows if UUID(window.group_id) in organizations]
            if len(known) < len(windows):
                # Intent is stored before a group is placed, so these are not customers' (a refused intent, a test).
                strangers = sorted({window.group_id for window in windows} - {str(known) for known in organizations})
                log.warning("usage of unknown groups", groups=strangers[:10], count=len(strangers))
            await repository.upsert(merged(known), organizations)

    async def backlog(self) -> int:
        """Entries that are not stored yet: those that nobody has read, and those that are read and not acknowledged."""
        groups: Any = await self.redis.xinfo_groups(STREAM)
        own = next(group for group in groups if group["name"] == GROUP.encode())
        unread = own.get("lag")
        if unread is None:  # Redis cannot tell after some trims, or is older than 7: then what is there counts
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
        """Keep it for people to look at; it must not stop the others."""
        counters.usage_rejected.add(1)
        log.error("a usage entry does not follow the contract", entry=entry_id.decode(), error=str(error)[:500])
        kept: Any = {b"id": entry_id, **fields}
        await self.redis.xadd(REJECTED, kept, maxlen=limits.INGEST_REJECTED_MAXLEN, approximate=False)
