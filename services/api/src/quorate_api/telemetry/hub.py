"""One reader of Redis per process, many subscribers.

The reader runs while there are subscribers. A slow subscriber loses the oldest samples, which charts can do without.
Subscribers get an event when Redis goes away and when it is back.
"""

import asyncio
import contextlib
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Collection
from typing import Any

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from quorate_api import limits
from quorate_api.tasks import end_task

log = structlog.get_logger(__name__)

STREAM = "quorate:live"
READ_BLOCK_MS = 1_000
READ_ENTRIES = 200
SAMPLE_FIELDS = (
    "append_per_s", "offered_per_s", "throttled_per_s", "p50_us", "p99_us", "committed_entries", "epoch",
)  # fmt: skip

Event = tuple[str, dict[str, Any]]


class Hub:
    def __init__(self, redis: Redis | None) -> None:
        self._redis = redis
        self._subscribers: dict[str, set[asyncio.Queue[Event]]] = defaultdict(set)
        self._count = 0
        self._reader: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._available: bool | None = None

    @contextlib.asynccontextmanager
    async def subscribe(self, group_ids: Collection[str]) -> AsyncIterator[asyncio.Queue[Event]]:
        """A bounded queue of (event, data) for a group and its partitions. `quorate_api.telemetry.viewers` bounds their
        number."""
        queue: asyncio.Queue[Event] = asyncio.Queue(limits.LIVE_QUEUE_EVENTS_MAX * len(group_ids))
        self._count += 1
        for group_id in group_ids:
            self._subscribers[group_id].add(queue)
        if self._available is False:
            offer(queue, ("source", {"available": False}))
        if self._reader is None:
            self._reader = asyncio.create_task(self._read(), name="live reader")
        try:
            yield queue
        finally:
            self._count -= 1
            for group_id in group_ids:
                self._subscribers[group_id].discard(queue)
                if not self._subscribers[group_id]:
                    del self._subscribers[group_id]
            if self._count == 0:
                self._stop_reading()

    def _stop_reading(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
            self._ending.add(self._reader)
            self._reader.add_done_callback(self._ending.discard)
            self._reader = None

    async def aclose(self) -> None:
        self._stop_reading()
        for reader in list(self._ending):
            await end_task(reader)

    async def _read(self) -> None:
        last: bytes | None = None  # None: begin with the entries after the newest one
        delay_s = limits.RETRY_DELAY_S_MIN
        while self._reader is asyncio.current_task():
            try:
                if self._redis is None:
                    raise RedisError("REDIS_URL is not set")
                if last is None:
                    newest: Any = await self._redis.xrevrange(STREAM, count=1)
                    last = newest[0][0] if newest else b"0"
                found: Any = await self._redis.xread({STREAM: last}, count=READ_ENTRIES, block=READ_BLOCK_MS)
            except (RedisError, OSError) as error:
                self._announce(available=False, why=str(error))
                last = None  # a Redis that lost its data numbers entries from the start again
                await asyncio.sleep(delay_s)
                delay_s = min(delay_s * 2, limits.RETRY_DELAY_S_MAX)
                continue
            self._announce(available=True)
            delay_s = limits.RETRY_DELAY_S_MIN
            for _, entries in found or []:
                for entry_id, fields in entries:
                    last = entry_id
                    self._publish(fields)

    def _announce(self, *, available: bool, why: str = "") -> None:
        if available == self._available or (available and self._available is None):
            self._available = available
            return
        log.warning("live samples", available=available, why=why)
        self._available = available
        for queue in {queue for queues in self._subscribers.values() for queue in queues}:
            offer(queue, ("source", {"available": available}))

    async def recent(self, group_ids: Collection[str], since_ms: int) -> list[dict[str, Any]]:
        """Samples from that time on, oldest first, of the stream's newest entries: of a large fleet, of fewer seconds.
        None while Redis is away: charts begin with now, then."""
        if self._redis is None:
            return []
        try:
            newest: Any = await self._redis.xrevrange(STREAM, count=limits.LIVE_RECENT_ENTRIES)
        except (RedisError, OSError):
            return []
        wanted = [group_id.encode() for group_id in group_ids]
        found = []
        for _, fields in reversed(newest):
            if any(each in fields.get(b"d", b"") for each in wanted):
                found += [sample for sample in _samples(fields) if sample["group"] in group_ids]
        return [sample for sample in found if sample["at_ms"] >= since_ms]

    def _publish(self, fields: dict[bytes, bytes]) -> None:
        for sample in _samples(fields):
            for queue in self._subscribers.get(sample["group"], ()):
                offer(queue, ("sample", sample))


def _samples(fields: dict[bytes, bytes]) -> list[dict[str, Any]]:
    """Samples of the heads in an entry; an entry that does not follow the contract has none."""
    try:
        report = json.loads(fields[b"d"])
        return [
            {"at_ms": int(report["at_ms"])}
            | {name: group[name] for name in SAMPLE_FIELDS}
            | {"group": str(group["group"])}
            for group in report["groups"]
            if group["role"] in ("head", "sole")
        ]
    except (KeyError, TypeError, ValueError) as error:
        log.warning("a live entry does not follow the contract", error=str(error))
        return []


def offer(queue: asyncio.Queue[Event], event: Event) -> None:
    """Put the event into the queue, if need be in the place of the oldest one."""
    if queue.full():
        queue.get_nowait()
    queue.put_nowait(event)
