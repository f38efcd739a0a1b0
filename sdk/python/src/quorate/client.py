"""The client of one group: append, read, tail, status. Everything runs on the event loop that connected it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from quorate import limits, wire
from quorate.appender import Appended, Appender
from quorate.arguments import Bytes, HandleLike, as_bytes, check_timeout, check_u64, source_of
from quorate.codes import Code
from quorate.errors import Failure, HandleError, read_refused
from quorate.handle import Handle
from quorate.link import Handles, Link
from quorate.pacing import Pacing
from quorate.reader import Reader, Tail
from quorate.spread import SpreadReads
from quorate.tail import Entry, entries_from
from quorate.tracing import Tracing, tracing_for


@dataclass(frozen=True, slots=True)
class ReadResult:
    """The result of a read. All offsets but the entries' own are exclusive ends."""

    entries: list[Entry]
    next_offset: int
    """The offset of the next read."""
    commit_offset: int
    trim_offset: int


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """The answering replica's view of its group."""

    role: str
    state: str
    epoch: int
    commit_offset: int
    durable_offset: int
    trim_offset: int
    next_offset: int
    head: str
    """Address of the head; empty when unknown."""


async def connect(
    handle: HandleLike,
    *,
    refresh: Callable[[], Awaitable[HandleLike] | HandleLike] | None = None,
    timeout: float = limits.TIMEOUT_S_DEFAULT,
    answer_wait: float = limits.ANSWER_WAIT_S_DEFAULT,
    read_only: bool = False,
    tracer: Any = None,
    pace: bool = True,
    spread_reads: bool = False,
) -> Client:
    """Connect to the group of a handle.

    `refresh` gets a new handle when this one no longer works (its token expired, the group moved). Without it such
    a client fails and must be connected again. `timeout` (seconds) bounds connecting, and is the default deadline of
    every later call. `read_only`: do not look for the head; the first append connects to it. `tracer`: an
    OpenTelemetry tracer, by default the global provider's if one is set up.

    `answer_wait` (seconds): time that a batch may remain unanswered after its callers' deadlines before it is sent
    again on a new connection. After a few vain repetitions the outcome of it and of all batches after it is unknown
    (`no_answer`), and appends continue in a new session. `pace`: appends above the head's rate wait in the client.
    Without it they are sent, and wait or are refused at the head.

    `spread_reads`: reads that do not wait for entries go to all replicas, more to those that answer sooner. A read
    returns all that this client knows to be committed: the head is asked where another replica is behind.

    Raises ConnectFailed when no replica can be attached in time, HandleError when the handle is malformed, or is of a
    group with partitions (`connect_partitioned`).
    """
    client = Client(_of_one_chain(Handle.parse(handle)), refresh, timeout, answer_wait, tracer, pace, spread_reads)
    try:
        await client._connect(read_only)
    except BaseException:
        await client.close(drain=False)
        raise
    return client


class Client:
    """The client that `connect` returns. Use it as an async context manager, or call `close` at the end."""

    def __init__(
        self,
        handle: Handle,
        refresh: Callable[[], Awaitable[HandleLike] | HandleLike] | None,
        timeout: float,
        answer_wait: float,
        tracer: Any,
        pace: bool,
        spread_reads: bool = False,
    ) -> None:
        loop = asyncio.get_running_loop()
        self._loop = loop
        self._timeout_s = check_timeout(timeout)
        self._handles = Handles(handle, source_of(refresh) if refresh else None)
        pacing = Pacing(handle.charges, handle.request_size_bytes) if pace else None
        self._appender = Appender(loop, handle.limits, check_timeout(answer_wait), pacing)
        self._reader = Reader(loop)
        self._write_link = Link(self._appender, self._handles)
        self._read_link = Link(self._reader, self._handles)
        self._spread = SpreadReads(loop, self._handles) if spread_reads else None
        self._append = self._appender.append
        self._tracing: Tracing | None = tracing_for(handle, tracer)

    @property
    def handle(self) -> Handle:
        """The current handle. A refresh replaces it."""
        return self._handles.handle

    @property
    def epoch(self) -> int:
        """The newest epoch of the group in any answer."""
        return self._handles.epoch

    @property
    def rate_per_s(self) -> int:
        """Entries a second that the group may append now, by its head's last report; 0 before the first report."""
        return self._appender.writer.rate_per_s

    # Appending.

    def append(
        self,
        entry: Bytes,
        *,
        timeout: float | None = None,
        expected_offset: int | None = None,
        fencing_token: int | None = None,
    ) -> asyncio.Future[int]:
        """Append one entry. Awaiting the result gives its offset.

        Many appends may be outstanding: call it without awaiting each, and they share batches. The order of the
        entries is the order of the calls. `await ready()` now and then bounds the outstanding appends.

        `expected_offset`: append only if the entry would get this offset. `fencing_token`: refuse if a greater
        token has been used on the group. `timeout` is in seconds.

        Raises AppendRefused: it did not happen (ConditionFailed, Fenced and others by `code`).
        Raises AppendUnknown: the deadline passed, or the connection was lost for good, after it was sent.
        """
        data = entry if type(entry) is bytes else as_bytes(entry)
        timeout_s = self._timeout_s if timeout is None else check_timeout(timeout)
        if self._tracing is None and expected_offset is None and fencing_token is None:
            return self._append(data, timeout_s)
        return self._append_carefully(data, timeout_s, expected_offset, fencing_token)

    def append_many(
        self,
        entries: Iterable[Bytes],
        *,
        timeout: float | None = None,
        expected_offset: int | None = None,
        fencing_token: int | None = None,
    ) -> asyncio.Future[Appended]:
        """Append entries ordered as one: all or none, with consecutive offsets.

        At most `handle.limits.max_batch_entries` entries and `max_batch_bytes` bytes (4 more for each entry).
        Otherwise like `append`.
        """
        listed = [as_bytes(entry) for entry in entries]
        if not listed:
            raise ValueError("append_many needs at least one entry")
        timeout_s = self._timeout_s if timeout is None else check_timeout(timeout)
        return self._append_alone(listed, True, timeout_s, expected_offset, fencing_token)

    def _append_carefully(
        self, data: bytes, timeout_s: float, expected_offset: int | None, fencing_token: int | None
    ) -> asyncio.Future[int]:
        if expected_offset is not None or fencing_token is not None:
            return self._append_alone([data], False, timeout_s, expected_offset, fencing_token)
        assert self._tracing is not None
        span, trace = self._tracing.start(1, len(data))
        future = self._append(data, timeout_s, trace)
        self._tracing.end_with(span, future)
        return future

    def _append_alone(
        self, entries: list[bytes], many: bool, timeout_s: float, expected_offset: int | None, fencing_token: int | None
    ) -> asyncio.Future[Any]:
        check_u64("expected_offset", expected_offset)
        check_u64("fencing_token", fencing_token)
        if self._tracing is None:
            return self._appender.append_alone(entries, many, timeout_s, expected_offset, fencing_token, None)
        span, trace = self._tracing.start(len(entries), sum(map(len, entries)))
        future = self._appender.append_alone(entries, many, timeout_s, expected_offset, fencing_token, trace)
        self._tracing.end_with(span, future)
        return future

    async def ready(self) -> None:
        """Wait until few enough appends are outstanding: back-pressure for a producer in a loop.

        They are as many as the group's rate lets pass within a second, so that none waits until its deadline."""
        await self._appender.wait_ready()

    # Reading.

    async def read(
        self,
        offset: int,
        *,
        max_entries: int = 1_000,
        max_bytes: int = limits.READ_BYTES_DEFAULT,
        wait: float = 0.0,
        timeout: float | None = None,
    ) -> ReadResult:
        """Committed entries from `offset` on, at most `max_entries`. `max_bytes` is exceeded by one batch at most.

        Waits up to `wait` seconds for a first entry, then returns none. Raises ReadRefused (Trimmed when the offset
        has been discarded), also when the deadline passes.
        """
        check_u64("offset", offset)
        if max_entries < 1 or max_bytes < 1:
            raise ValueError("max_entries and max_bytes must be at least 1")
        timeout_s = self._timeout_s if timeout is None else check_timeout(timeout)
        ends_at = self._loop.time() + wait

        def build(request: int) -> wire.Message:
            wait_ms = max(0, int((ends_at - self._loop.time()) * 1_000))
            return wire.Read(request, min(max_bytes, 2**32 - 1), min(max_entries, 2**32 - 1), wait_ms, offset)

        answer = await self._read(build, offset, timeout_s, wait)
        try:
            entries = entries_from(answer, offset)[:max_entries]
        except wire.WireError as problem:
            raise read_refused(Failure(problem.code, str(problem))) from None
        next_offset = entries[-1].offset + 1 if entries else max(offset, answer.next_offset)
        return ReadResult(entries, next_offset, answer.commit_offset, answer.trim_offset)

    async def _read(
        self, build: Callable[[int], wire.Message], offset: int, timeout_s: float, wait_s: float
    ) -> wire.Entries:
        spread, begun = self._spread, self._loop.time()
        if spread is not None:
            spread.end = max(spread.end, self._appender.writer.acked_end)
            found = await spread.read(build, offset, timeout_s) if wait_s <= 0.0 else None
            if found is not None:
                return found
        left_s = max(timeout_s - (self._loop.time() - begun), 0.001)
        answer: wire.Entries = await self._reader.request(build, left_s + wait_s)
        if spread is not None:
            spread.note(answer)
        return answer

    def tail(self, from_offset: int = 0, *, credit_bytes: int = limits.TAIL_CREDIT_BYTES) -> Tail:
        """Follow the log: `async for entry in client.tail(0)`. At most `credit_bytes` and one batch are buffered."""
        check_u64("from_offset", from_offset)
        if not 0 < credit_bytes < 2**32:
            raise ValueError("credit_bytes must be positive and below 4 GiB")
        return Tail(self._reader, from_offset, credit_bytes)

    async def trim(self, before_offset: int, *, timeout: float | None = None) -> int:
        """Discard the entries before `before_offset` for good on every replica. Returns the trim offset.

        Batches are discarded whole, so the trim offset may be less than requested. Only committed entries can be
        discarded (ReadRefused with the code trim_beyond_commit). After a passed deadline the trim may have happened
        nevertheless; trimming again is harmless. The permission to append is required.
        """
        check_u64("before_offset", before_offset)
        timeout_s = self._timeout_s if timeout is None else check_timeout(timeout)
        answer: wire.TrimOk = await self._reader.request(lambda request: wire.Trim(request, before_offset), timeout_s)
        return answer.trim_offset

    async def status(self, *, timeout: float | None = None) -> GroupStatus:
        """The view of the group's head, or of another replica while the head is unreachable.

        The head answers after the whole ring has confirmed that it still is the head. Its `commit_offset` therefore
        includes every entry acknowledged before the call."""
        timeout_s = self._timeout_s if timeout is None else check_timeout(timeout)
        answer: wire.StatusOk = await self._reader.request(wire.Status, timeout_s)
        return GroupStatus(
            role=_name_of(wire.Role, answer.role),
            state=_name_of(wire.State, answer.state),
            epoch=answer.epoch,
            commit_offset=answer.commit_offset,
            durable_offset=answer.durable_offset,
            trim_offset=answer.trim_offset,
            next_offset=answer.next_offset,
            head=answer.head,
        )

    # Opening and closing.

    async def close(self, *, drain: bool = True) -> None:
        """Disconnect. With `drain`, first wait for the outstanding appends, which end by their deadlines. Without it
        they end at once as refused or unknown."""
        if drain:
            await self._appender.wait_drained()
        self._appender.close()
        self._reader.close()
        if self._spread is not None:
            await self._spread.close()
        await asyncio.gather(self._write_link.close(), self._read_link.close())

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, error_type: object, *_: object) -> None:
        await self.close(drain=error_type is None)

    async def _connect(self, read_only: bool) -> None:
        link = self._read_link if read_only else self._write_link
        await link.wait_attached(self._timeout_s)


def _of_one_chain(handle: Handle) -> Handle:
    if handle.partitions is not None:
        count = len(handle.partitions.members)
        raise HandleError(f"the group has {count} partitions: use connect_partitioned, and append by key")
    return handle


def _name_of(names: type[wire.Role] | type[wire.State], value: int) -> str:
    try:
        return names(value).name.lower()
    except ValueError:
        return str(value)


__all__ = ["Appended", "Client", "Code", "Entry", "GroupStatus", "ReadResult", "connect"]
