"""The entries of all partitions of a group, as they are committed (sdk/contract/partitions.md)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from quorate import limits
from quorate.cursor import Cursor, may_begin
from quorate.tail import Entry

if TYPE_CHECKING:
    from quorate.partitioned import PartitionedClient


class PartitionEntry(NamedTuple):
    partition: int
    offset: int
    data: bytes
    timestamp_us: int


class MergedTail:
    """An endless async iterator over the entries of all partitions, each partition's in order.

    It goes on with partitions that are added, after the entries that come before theirs. To stop, close it (`aclose`,
    or leave `async with`). Iterating raises ReadRefused when a partition can no longer be followed.
    """

    def __init__(self, client: PartitionedClient, cursor: Cursor) -> None:
        self._client = client
        self._given = dict(enumerate(cursor.offsets))
        """By partition: the next offset after what the caller has."""
        self._taken = dict(self._given)
        """The same for what is ready, which comes in this order."""
        self._ready: asyncio.Queue[tuple[int, list[Entry] | Exception]] = asyncio.Queue(limits.MERGED_BATCHES_MAX)
        self._rest: tuple[int, list[Entry]] = (0, [])
        self._at = 0
        self._moved = asyncio.Condition()
        self._tasks: list[asyncio.Task[None]] = []
        self._closed = False
        client._tails.add(self)
        self.learn()
        if client._source is not None:
            self._tasks.append(client._loop.create_task(self._watch()))

    @property
    def cursor(self) -> Cursor:
        """The place after the entries so far: a tail from here gives the next ones."""
        offsets = tuple(self._given[partition] for partition in sorted(self._given))
        return Cursor(self._client.handle.group_id, offsets)

    def __aiter__(self) -> MergedTail:
        return self

    async def __anext__(self) -> PartitionEntry:
        if self._at >= len(self._rest[1]):
            self._rest, self._at = await self._next_batch(), 0
        partition, entries = self._rest
        entry = entries[self._at]
        self._at += 1
        self._given[partition] = entry.offset + 1
        return PartitionEntry(partition, entry.offset, entry.data, entry.timestamp_us)

    async def _next_batch(self) -> tuple[int, list[Entry]]:
        if self._closed:
            raise StopAsyncIteration
        partition, found = await self._ready.get()
        if isinstance(found, Exception):
            raise found
        return partition, found

    def learn(self) -> None:
        """Follow the partitions that are new."""
        known = len(self._given) if self._tasks else 0
        for partition in range(known, self._client.partitions):
            self._given.setdefault(partition, 0)
            self._taken.setdefault(partition, 0)
            self._tasks.append(self._client._loop.create_task(self._follow(partition)))

    async def _follow(self, partition: int) -> None:
        try:
            async with self._moved:
                await self._moved.wait_for(lambda: may_begin(partition, self._client._partitions.changes, self._taken))
            async with self._client.partition(partition).tail(
                self._taken[partition], credit_bytes=limits.PARTITION_CREDIT_BYTES
            ) as tail:
                while True:
                    entries = await tail.next_entries()
                    await self._ready.put((partition, entries))
                    async with self._moved:
                        self._taken[partition] = entries[-1].offset + 1
                        self._moved.notify_all()
        except Exception as problem:  # the caller gets it, where it iterates
            await self._ready.put((partition, problem))

    async def _watch(self) -> None:
        """Learn of partitions that are added: soon after a partition's epoch has changed, and now and then."""
        seen, looks, due = self._client._epochs(), [], self._now() + limits.LAYOUT_WATCH_S
        while True:
            await asyncio.sleep(limits.EPOCH_TICK_S)
            now = self._now()
            if (epochs := self._client._epochs()) != seen:
                seen, looks = epochs, [now + later_s for later_s in limits.LAYOUT_LOOKS_S]
            if now < due and not (looks and now >= looks[0]):
                continue
            looks, due = looks[1:], now + limits.LAYOUT_WATCH_S
            layout = self._client._partitions.layout
            try:
                await self._client._refresh(at_most_s=limits.EPOCH_TICK_S)
            except Exception:  # the API is away: partitions that are known go on
                continue
            if self._client._partitions.layout != layout:
                looks = []

    def _now(self) -> float:
        return self._client._loop.time()

    async def aclose(self) -> None:
        self._closed = True
        self._client._tails.discard(self)
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # An iteration that waits meanwhile ends, too.
        while not self._ready.empty():
            self._ready.get_nowait()
        self._ready.put_nowait((0, StopAsyncIteration()))

    async def __aenter__(self) -> MergedTail:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
