"""The client of a group with partitions: append by key, read one partition, tail all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any

from quorate import limits
from quorate.arguments import Bytes, HandleLike, as_bytes, check_timeout, source_of
from quorate.client import Client
from quorate.codes import Code
from quorate.cursor import Cursor
from quorate.errors import AppendRefused, ConnectFailed, Failure, HandleError, QuorateError, append_refused
from quorate.handle import Handle, Partitions
from quorate.keys import KEY_HASH
from quorate.merged import MergedTail
from quorate.rerouting import Call, Placed, Rerouting


async def connect_partitioned(
    handle: HandleLike,
    *,
    refresh: Callable[[], Awaitable[HandleLike] | HandleLike] | None = None,
    timeout: float = limits.TIMEOUT_S_DEFAULT,
    answer_wait: float = limits.ANSWER_WAIT_S_DEFAULT,
    tracer: Any = None,
    pace: bool = True,
    spread_reads: bool = False,
) -> PartitionedClient:
    """Connect to all partitions of a group, each when it is first used. A group without partitions has one.

    `refresh` gets new handles. It is needed to follow a group whose partitions grow: without it appends are refused
    with `layout_changed` then. The other arguments are those of `connect`, for each partition.

    Raises ConnectFailed when no partition can be reached in time, HandleError for a malformed handle or an unknown key
    hash.
    """
    client = PartitionedClient(Handle.parse(handle), refresh, timeout, answer_wait, tracer, pace, spread_reads)
    try:
        await client._connect()
    except BaseException:
        await client.close(drain=False)
        raise
    return client


class PartitionedClient:
    """The client that `connect_partitioned` returns. Use it as an async context manager, or call `close` at the end."""

    def __init__(
        self,
        handle: Handle,
        refresh: Callable[[], Awaitable[HandleLike] | HandleLike] | None,
        timeout: float,
        answer_wait: float,
        tracer: Any,
        pace: bool,
        spread_reads: bool,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._handle = handle
        self._partitions = partitions_of(handle)
        self._writing = self._partitions
        """The layout by which keys find their partitions: the one that the writers' tokens name."""
        self._source = source_of(refresh) if refresh else None
        self._timeout_s = check_timeout(timeout)
        self._make = partial(
            Client,
            timeout=timeout,
            answer_wait=check_timeout(answer_wait),
            tracer=tracer,
            pace=pace,
            spread_reads=spread_reads,
        )
        self._writers: dict[int, Client] = {}
        self._readers: dict[int, Client] = {}
        self._rerouting = Rerouting(len(self._partitions.members))
        self._calls = 0
        self._refreshing = asyncio.Lock()
        self._refreshed_at = float("-inf")
        self._moved = asyncio.Event()
        """Set when an append has its outcome, and when the layout is another."""
        self._changing: asyncio.Task[None] | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._tails: set[MergedTail] = set()

    @property
    def handle(self) -> Handle:
        """The current handle. A refresh replaces it."""
        return self._handle

    @property
    def partitions(self) -> int:
        """The number of partitions that keys are divided among."""
        return len(self._partitions.members)

    # Appending.

    def append(
        self,
        entry: Bytes,
        *,
        key: bytes | str | None = None,
        partition: int | None = None,
        timeout: float | None = None,
    ) -> asyncio.Future[Placed]:
        """Append one entry to its key's partition. Awaiting the result gives partition and offset.

        Entries of one key have the order of the calls, also while partitions are added. Without a key, or the
        `partition` of your choice, partitions take turns. Many appends may be outstanding; see `Client.append`.

        Raises AppendRefused and AppendUnknown as `Client.append`.
        """
        if key is not None and partition is not None:
            raise ValueError("give a key or a partition, not both")
        if partition is not None and not 0 <= partition < self.partitions:
            raise ValueError(f"the group has {self.partitions} partitions, numbered from 0; {partition} is none")
        timeout_s = self._timeout_s if timeout is None else check_timeout(timeout)
        self._calls += 1
        ends_at = self._loop.time() + timeout_s
        call = Call(self._calls, as_bytes(entry), key, partition, ends_at, self._loop.create_future())
        if not self._rerouting.is_changing:
            self._send(call)
        elif self._rerouting.held >= limits.PENDING_CALLS_READY:
            self._fail(call, Failure(Code.QUEUE_FULL, "partitions are being added, and many appends wait", True))
        else:
            self._rerouting.hold(call)
        return call.future

    async def ready(self) -> None:
        """Wait until few enough appends are outstanding in every partition: back-pressure for a producer in a loop."""
        while self._rerouting.is_changing:
            self._moved.clear()
            await self._moved.wait()
        for writer in list(self._writers.values()):
            await writer.ready()

    def _send(self, call: Call) -> None:
        partition = self._rerouting.place(call)
        try:
            writer = self._writer(partition)
            sent = writer.append(call.entry, timeout=max(call.ends_at - self._loop.time(), 0.001))
        except QuorateError as problem:
            call.future.set_exception(problem)
            return
        self._rerouting.under_way += 1
        sent.add_done_callback(partial(self._sent, call, partition))

    def _sent(self, call: Call, partition: int, sent: asyncio.Future[int]) -> None:
        self._rerouting.under_way -= 1
        self._moved.set()
        problem = None if sent.cancelled() else sent.exception()
        if call.future.done():
            return  # its caller waits no more
        if sent.cancelled():
            call.future.cancel()
        elif problem is None:
            call.future.set_result(Placed(partition, sent.result()))
        elif isinstance(problem, AppendRefused) and problem.code == Code.LAYOUT_CHANGED and self._source is not None:
            self._rerouting.hold(call)
            self._begin_change()
        else:
            call.future.set_exception(problem)

    def _writer(self, partition: int) -> Client:
        writer = self._writers.get(partition)
        if writer is None:
            handle = member_of(self._writing, partition)
            layout, token = self._writing.layout, handle.token

            async def same_layout() -> Handle:
                # Under another layout a batch could be ordered in a partition that its key has left.
                found = await self._refresh()
                member = found.members[partition]
                return member if found.layout == layout else replace(member, token=token)

            writer = self._make(handle, same_layout if self._source else None)
            self._writers[partition] = writer
        return writer

    def _fail(self, call: Call, failure: Failure) -> None:
        if not call.future.done():
            call.future.set_exception(append_refused(failure))

    # Another layout.

    def _begin_change(self) -> None:
        self._rerouting.is_changing = True
        if self._changing is None:
            self._changing = self._loop.create_task(self._change_layout())

    async def _change_layout(self) -> None:
        try:
            while not self._rerouting.is_drained:
                self._moved.clear()
                await self._moved.wait()
            await self._await_layout(self._writing.layout)
            self._writing = self._partitions
            writers, self._writers = self._writers, {}
            for writer in writers.values():
                closing = self._loop.create_task(writer.close(drain=False))
                self._closing.add(closing)
                closing.add_done_callback(self._closing.discard)
            for call in self._rerouting.use(self.partitions):
                self._send(call)
        except QuorateError as problem:
            for call in self._rerouting.give_up():
                self._fail(call, Failure(Code.LAYOUT_CHANGED, str(problem)))
        finally:
            self._changing = None
            self._moved.set()

    async def _await_layout(self, former: int) -> None:
        """Ask for handles until the layout is another, or nobody waits for it. Raises HandleError for an unknown key
        hash."""
        wait_s = limits.LAYOUT_POLL_S_MIN
        while self._partitions.layout == former:
            for call in self._rerouting.take_late(self._loop.time()):
                self._fail(call, Failure(Code.DEADLINE_EXCEEDED, "partitions were being added", True))
            if self._rerouting.held == 0:
                return  # the next append finds out again
            try:
                await self._refresh(at_most_s=0.0)
            except HandleError:
                raise
            except Exception:  # the API is away: deadlines end this
                self._refreshed_at = float("-inf")
            if self._partitions.layout == former:
                await asyncio.sleep(wait_s)
                wait_s = min(2 * wait_s, limits.LAYOUT_POLL_S_MAX)

    async def _refresh(self, at_most_s: float = limits.REFRESH_INTERVAL_S_MIN) -> Partitions:
        """The partitions by a handle that is `at_most_s` old. One request serves all partitions' clients."""
        assert self._source is not None
        async with self._refreshing:
            if self._loop.time() - self._refreshed_at >= at_most_s:
                handle = await asyncio.wait_for(self._source(), limits.TIMEOUT_S_DEFAULT)
                self._refreshed_at = self._loop.time()
                self._use(handle)
        return self._partitions

    def _use(self, handle: Handle) -> None:
        partitions = partitions_of(handle)
        if partitions.layout < self._partitions.layout:
            return  # an API process has not heard of the growth
        self._handle, self._partitions = handle, partitions
        if partitions.layout > self._writing.layout:
            self._begin_change()
        for tail in self._tails:
            tail.learn()

    # Reading.

    def partition(self, number: int) -> Client:
        """The client of one partition, to read, tail, trim and ask for its status. Append by this client alone."""
        if not 0 <= number < self.partitions:
            raise ValueError(f"the group has {self.partitions} partitions, numbered from 0; {number} is none")
        reader = self._readers.get(number)
        if reader is None:

            async def newest() -> Handle:
                return (await self._refresh()).members[number]

            reader = self._make(member_of(self._partitions, number), newest if self._source else None)
            self._readers[number] = reader
        return reader

    def tail(self, cursor: Cursor | str | None = None) -> MergedTail:
        """Follow all partitions from a cursor on, or from the beginning: `async for entry in client.tail(cursor)`.

        `tail.cursor` is the place after the entries so far. Entries of a key come in their order, also across growths.
        Raises CursorError for a cursor of another group, or of more partitions than there are.
        """
        if cursor is None:
            cursor = Cursor.beginning(self._handle.group_id)
        elif isinstance(cursor, str):
            cursor = Cursor.parse(cursor)
        cursor = cursor.within(self._handle.group_id, self.partitions)
        return MergedTail(self, cursor)

    def _epochs(self) -> dict[int, int]:
        """The newest epoch in which each partition was seen by a reader."""
        return {number: reader.epoch for number, reader in self._readers.items()}

    # Opening and closing.

    async def _connect(self) -> None:
        """Until one partition is reached. Others may be away."""
        last: ConnectFailed | None = None
        ends_at = self._loop.time() + self._timeout_s
        for number in range(self.partitions):
            try:
                await self.partition(number)._connect(read_only=True)
            except ConnectFailed as problem:
                last = problem
                if self._loop.time() >= ends_at:
                    break
            else:
                return
        assert last is not None, "a group has a partition"
        raise last

    async def close(self, *, drain: bool = True) -> None:
        """Disconnect. With `drain`, first wait for the outstanding appends, which end by their deadlines."""
        while drain and (self._rerouting.is_changing or not self._rerouting.is_drained):
            self._moved.clear()
            await self._moved.wait()
        if self._changing is not None:
            self._changing.cancel()
        for call in self._rerouting.give_up():
            self._fail(call, Failure(Code.CLIENT_CLOSED))
        for tail in list(self._tails):
            await tail.aclose()
        clients = [*self._writers.values(), *self._readers.values()]
        await asyncio.gather(*(client.close(drain=False) for client in clients), *self._closing)

    async def __aenter__(self) -> PartitionedClient:
        return self

    async def __aexit__(self, error_type: object, *_: object) -> None:
        await self.close(drain=error_type is None)


def partitions_of(handle: Handle) -> Partitions:
    """The partitions of a handle; a group without any has one. Raises HandleError for a key hash that is not known."""
    if handle.partitions is None:
        return Partitions(KEY_HASH, 0, (), (handle,))
    if handle.partitions.key_hash != KEY_HASH:
        raise HandleError(
            f"the group's keys are hashed by version {handle.partitions.key_hash}, and this SDK knows version "
            f"{KEY_HASH}: upgrade it"
        )
    return handle.partitions


def member_of(partitions: Partitions, number: int) -> Handle:
    """The handle of one partition. Raises ConnectFailed for one without servers."""
    member = partitions.members[number]
    if not member.endpoints:
        raise ConnectFailed(Failure(Code.NO_CONNECTION, f"partition {number} has no servers now", True))
    return member
