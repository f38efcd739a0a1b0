"""(a) Usage: from the Redis stream into `usage_windows`, read at least once, counted once.

Reading is by consumer group. An entry is acknowledged after its transaction has committed, so a crash between the two
repeats the read. That is harmless, because the upsert keeps the greatest of every counter.

A record that cannot be true, or that PostgreSQL does not take, is set aside alone (`rejects.py`).
"""

import math
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import structlog
from redis.asyncio import Redis
from redis.exceptions import ResponseError
from sqlalchemy.exc import DataError, IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.database.scope import EveryOrganization
from quorate_api.packed.repository import PackedRepository
from quorate_api.telemetry import plausible
from quorate_api.telemetry.records import WHOLE_ENTRY, Found, Rejected, read
from quorate_api.telemetry.windows import HOUR_S, Window, merged
from quorate_api.totals.repository import TotalsRepository
from quorate_api.usage.repository import Owner, UsageRepository
from quorate_api.worker import rejects

log = structlog.get_logger(__name__)

STREAM = "quorate:usage"
GROUP = "quorate-worker"
STORED_KEY = "quorate:usage:stored"  # servers trim the stream by it (docs/internals/telemetry.md)
BACKLOG_COUNTED_MAX = 10_000

StreamEntry = tuple[bytes, dict[bytes, bytes] | None]


@dataclass(slots=True)
class Ingest:
    """One consumer. `name` should stay the same over restarts, so that it finds its own unacknowledged entries."""

    redis: Redis
    engine: AsyncEngine
    name: str
    _recovered: bool = False
    _told_s: float = -math.inf

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
        if entries:
            await self.store(entries)
            await self.redis.xack(STREAM, GROUP, *[entry_id for entry_id, _ in entries])
        await self._tell_stored()
        return len(entries)

    async def _tell_stored(self) -> None:
        """Tell servers what they may trim: entries before the first one that is not stored."""
        now_s = time.monotonic()
        if now_s - self._told_s >= limits.INGEST_TELL_S:
            await self.redis.set(STORED_KEY, await self._stored_until_id())
            self._told_s = now_s

    async def store(self, entries: list[StreamEntry]) -> None:
        """Store the batch, and set aside what does not count."""
        found: list[Found] = []
        rejected: list[Rejected] = []
        for raw_id, fields in entries:
            if not fields:  # trimmed before it was read again
                continue
            entry_id = raw_id.decode()
            if b"d" not in fields:
                rejected.append(Rejected(entry_id, WHOLE_ENTRY, "it has no field `d`", str(fields)))
                continue
            readable, unreadable = read(entry_id, fields[b"d"])
            found += readable
            rejected += unreadable
        async with self.engine.begin() as connection:
            scope = EveryOrganization(connection, "servers report all their groups in one entry")
            owners = await UsageRepository(scope).owners_of({UUID(one.window.group_id) for one in found})
        known, impossible = _sifted(found, owners, time.time())
        await rejects.keep(self.engine, [*rejected, *impossible])
        await self._count(known, owners)

    async def _count(self, found: list[Found], owners: dict[UUID, Owner]) -> None:
        """Halves a batch that PostgreSQL refuses for what is in it, until the one at fault is alone."""
        if not found:
            return
        try:
            await store_windows(self.engine, [one.window for one in found], owners)
        except (DataError, IntegrityError) as error:
            if len(found) == 1:
                await rejects.keep(self.engine, [found[0].rejected(str(error.orig).splitlines()[0])])
                return
            half = len(found) // 2
            await self._count(found[:half], owners)
            await self._count(found[half:], owners)

    async def backlog(self) -> int:
        """Number of entries that are not stored yet: unread ones, and unacknowledged ones."""
        groups: Any = await self.redis.xinfo_groups(STREAM)
        own = next(group for group in groups if group["name"] == GROUP.encode())
        unread = own.get("lag")
        if unread is None:  # Redis before 7, or after some trims, does not know it: count the entries
            after = await self.redis.xrange(STREAM, min=b"(" + own["last-delivered-id"], count=BACKLOG_COUNTED_MAX)
            unread = len(after or [])
        return int(own["pending"]) + int(unread)

    async def stored_until(self) -> datetime | None:
        """The time until which everything that was sent is stored, by any worker; None: nothing was ever read."""
        until_ms = int((await self._stored_until_id()).partition(b"-")[0])
        return datetime.fromtimestamp(until_ms / 1_000, UTC) if until_ms else None

    async def _stored_until_id(self) -> bytes:
        """All entries before this one are stored, by any worker.

        In this order: an entry that is delivered between the two questions is pending in the second.
        """
        groups: Any = await self.redis.xinfo_groups(STREAM)
        pending: Any = await self.redis.xpending(STREAM, GROUP)
        read: bytes = next(group["last-delivered-id"] for group in groups if group["name"] == GROUP.encode())
        return pending["min"] if pending["pending"] else read

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


async def store_windows(engine: AsyncEngine, windows: list[Window], owners: dict[UUID, Owner]) -> None:
    """Store windows, and all that follows from them. `owners`: of the windows' groups."""
    reason = "servers report all their groups in one entry"
    async with engine.begin() as connection:
        await UsageRepository(EveryOrganization(connection, reason)).ensure_days(windows)
    async with engine.begin() as connection:
        scope = EveryOrganization(connection, reason)
        organizations = {group_id: owner.organization_id for group_id, owner in owners.items()}
        await TotalsRepository(scope).note(windows, organizations)
        # Some may come late: their hour is packed, and is summed up and packed again.
        late = await PackedRepository(scope).take(_over(windows, time.time()))
        await UsageRepository(scope).upsert(merged([*windows, *late]), owners)


def _over(windows: list[Window], now_s: float) -> set[tuple[UUID, int]]:
    """Hours of these windows that are over, and may be packed."""
    hours = {(UUID(window.group_id), window.window_start_s // HOUR_S * HOUR_S) for window in windows}
    return {hour for hour in hours if hour[1] + HOUR_S <= now_s}


def _sifted(found: list[Found], owners: dict[UUID, Owner], now_s: float) -> tuple[list[Found], list[Rejected]]:
    """Windows that count, and those that cannot be true. Windows of no customer are in neither."""
    known, impossible, unknown = [], [], set()
    for one in found:
        owner = owners.get(UUID(one.window.group_id))
        if owner is None:
            unknown.add(one.window.group_id)
            continue
        # Redis' clock is a second witness: a worker whose clock is late takes no server's time for wrong.
        present_s = max(now_s, int(one.entry_id.partition("-")[0]) / 1_000)
        reason = plausible.objection(one.window, owner.since_s, present_s)
        if reason is None:
            known.append(one)
        else:
            impossible.append(one.rejected(reason))
    if unknown:
        # Intent is stored before placement, so these belong to no customer (a refused intent, a test).
        log.warning("usage of unknown groups", groups=sorted(unknown)[:10], count=len(unknown))
    return known, impossible
