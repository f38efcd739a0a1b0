"""Reads, tails, trims and status calls over one link to any replica, the head preferred.

Repeating any of them is harmless, so a request stays open across connections until its answer or its deadline.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from quorate import limits, wire
from quorate.codes import Code
from quorate.connection import Connection
from quorate.errors import Failure, QuorateError, read_refused
from quorate.link import Link
from quorate.tail import Entry, TailState
from quorate.writer import Reroute

_NOT_HERE_YET = (Code.OFFSET_BEYOND_END, Code.SYNCING)
"""Refusals of a replica that lags: the entries exist elsewhere, or soon here."""


class Request:
    """A READ, TRIM or STATUS awaiting its answer."""

    def __init__(self, loop: asyncio.AbstractEventLoop, build: Callable[[int], wire.Message]) -> None:
        self.build = build
        self.answer: asyncio.Future[Any] = loop.create_future()
        self.refusal: Failure | None = None
        """The last retryable refusal."""

    def on_message(self, message: wire.Message) -> int:
        if not self.answer.done():
            self.answer.set_result(message)
        return 0

    def on_failure(self, failure: Failure) -> None:
        if not self.answer.done():
            self.answer.set_exception(read_refused(failure))


class Subscription:
    """A tail's subscription, across connections."""

    def __init__(self, offset: int, credit_bytes: int) -> None:
        self.state = TailState(offset, credit_bytes)
        self.failure: Failure | None = None
        self.changed = asyncio.Event()

    def build(self, request: int) -> wire.Message:
        return wire.Subscribe(request, self.state.start(), self.state.next_offset)

    def on_message(self, message: wire.Message) -> None:
        if not isinstance(message, wire.Entries):
            raise wire.WireError(Code.PROTOCOL_ERROR, f"{type(message).__name__} for a subscription")
        self.state.on_entries(message)
        self.changed.set()

    def on_failure(self, failure: Failure) -> None:
        self.failure = failure
        self.changed.set()


class Reader:
    link: Link

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._open: dict[int, Request | Subscription] = {}
        self._last_request = 0
        self._closed = False

    # Calls.

    async def request(self, build: Callable[[int], wire.Message], timeout_s: float) -> Any:
        """Send the frame of `build(request)` until it is answered. Raises ReadRefused."""
        if len(self._open) >= limits.READS_OUTSTANDING_MAX:
            raise read_refused(Failure(Code.QUEUE_FULL, f"{len(self._open)} reads are outstanding", True))
        request = Request(self._loop, build)
        number = self._start(request)
        try:
            return await asyncio.wait_for(request.answer, timeout_s)
        except TimeoutError:
            raise read_refused(request.refusal or self._lateness()) from None
        finally:
            self._open.pop(number, None)

    def subscribe(self, offset: int, credit_bytes: int) -> tuple[int, Subscription]:
        subscriptions = sum(isinstance(item, Subscription) for item in self._open.values())
        if subscriptions >= limits.TAILS_MAX:
            raise read_refused(Failure(Code.QUEUE_FULL, f"{subscriptions} tails are open on this client"))
        subscription = Subscription(offset, credit_bytes)
        return self._start(subscription), subscription

    def give_credit(self, number: int, size: int) -> None:
        if self.link.connection is not None and size > 0:
            self.link.connection.send(wire.Credit(number, size))

    def cancel(self, number: int) -> None:
        if self._open.pop(number, None) is not None and self.link.connection is not None:
            self.link.connection.send(wire.Cancel(number))

    def close(self) -> None:
        self._closed = True
        self._fail_all(Failure(Code.CLIENT_CLOSED))

    def _start(self, item: Request | Subscription) -> int:
        if self._closed:
            raise read_refused(Failure(Code.CLIENT_CLOSED))
        self._last_request = self._last_request % (2**32 - 1) + 1
        self._open[self._last_request] = item
        self._send(self._last_request)
        return self._last_request

    def _send(self, number: int) -> None:
        item = self._open.get(number)
        if item is None:
            return
        if self.link.connection is None:
            self.link.want()
        else:
            self.link.connection.send(item.build(number))

    def _send_again(self, number: int, connection: Connection | None) -> None:
        """Send the request again unless a new connection has done so meanwhile."""
        if connection is not None and connection is self.link.connection:
            self._send(number)

    def _lateness(self) -> Failure:
        if self.link.connection is None:
            return self.link.reason._replace(retryable=True)
        return Failure(Code.DEADLINE_EXCEEDED, "the read was not answered in time", True)

    def _fail_all(self, failure: Failure) -> None:
        items, self._open = self._open, {}
        for item in items.values():
            item.on_failure(failure)

    # Port.

    @property
    def session(self) -> int:
        return 0

    def on_attached(self, attached: wire.Attached) -> Reroute | None:
        if attached.role == wire.Role.NONE or attached.state == wire.State.SYNCING:
            return Reroute("head", attached.head, "it has no readable replica")
        return None

    def on_ready(self) -> None:
        for number in list(self._open):
            self._send(number)

    def on_frame(self, frame: wire.Frame) -> None:
        message = wire.decode(frame)
        if isinstance(message, wire.Refused):
            self._on_refused(message)
        elif isinstance(message, (wire.Entries, wire.StatusOk, wire.TrimOk)):
            item = self._open.get(message.request)
            if item is not None:  # else the request was cancelled, or its caller stopped waiting
                item.on_message(message)
            self.link.progressed()
        elif isinstance(message, wire.Notice):
            self.link.saw_epoch(message.epoch)
            if message.role == wire.Role.NONE:
                self.link.reroute(Reroute("head", message.head, "the replica was removed"))
        else:
            raise wire.WireError(Code.PROTOCOL_ERROR, f"unexpected {type(message).__name__}")

    def _on_refused(self, refused: wire.Refused) -> None:
        item = self._open.get(refused.id)
        if item is None:
            return
        again_s = max(refused.retry_after_ms / 1e3, limits.BACKOFF_BASE_S)
        behind = refused.code in _NOT_HERE_YET
        if refused.retry == wire.RetryHint.HERE or behind:
            if isinstance(item, Request):
                item.refusal = Failure(refused.code, refused.message, True, again_s)
            self._loop.call_later(
                min(again_s, limits.BACKOFF_MAX_S), self._send_again, refused.id, self.link.connection
            )
        elif refused.retry == wire.RetryHint.HEAD:
            self.link.reroute(Reroute("head", refused.head, f"read refused with {refused.code}"))
        elif refused.retry == wire.RetryHint.HANDLE:
            self.link.reroute(Reroute("handle", reason=f"read refused with {refused.code}"))
        else:
            del self._open[refused.id]
            item.on_failure(Failure(refused.code, refused.message))

    def on_read(self) -> None:
        pass

    def on_detached(self, failure: Failure) -> None:
        pass

    def on_hopeless(self, failure: Failure) -> None:
        self._fail_all(failure)

    def awaits_answer(self) -> bool:
        # A read may wait for wait_ms and a tail for ever, so a PING checks whether the server is there.
        return bool(self._open)

    def busy(self) -> bool:
        return bool(self._open)


class Tail:
    """The entries of a log from an offset on, as they are committed: an endless async iterator.

    It survives the loss of a replica without gap or duplicate. To stop before the client is closed, close it
    (`aclose`, or leave `async with`). Iterating raises ReadRefused when the log can no longer be followed, for
    example because the offset was trimmed.
    """

    def __init__(self, reader: Reader, offset: int, credit_bytes: int) -> None:
        self._reader = reader
        self._number, self._subscription = reader.subscribe(offset, credit_bytes)
        self._entries: list[Entry] = []
        self._at = 0
        self._waiting = False

    def __aiter__(self) -> Tail:
        return self

    async def __anext__(self) -> Entry:
        if self._at >= len(self._entries):
            self._entries, self._at = await self.next_entries(), 0
        entry = self._entries[self._at]
        self._at += 1
        return entry

    async def next_entries(self) -> list[Entry]:
        """The next entries, at least one. Faster than one by one."""
        if self._at < len(self._entries):
            rest, self._entries, self._at = self._entries[self._at :], [], 0
            return rest
        if self._waiting:
            raise RuntimeError("a tail has one reader; open another tail for another task")
        self._waiting = True
        try:
            return await self._received()
        finally:
            self._waiting = False

    async def _received(self) -> list[Entry]:
        subscription = self._subscription
        while True:
            taken = subscription.state.take()
            if taken is not None:
                entries, size = taken
                self._reader.give_credit(self._number, size)
                if entries:
                    return entries
                continue
            if subscription.failure is not None:
                error: QuorateError = read_refused(subscription.failure)
                raise error
            subscription.changed.clear()
            await subscription.changed.wait()

    async def aclose(self) -> None:
        self._reader.cancel(self._number)
        self._subscription.on_failure(Failure(Code.CLIENT_CLOSED, "the tail was closed"))

    async def __aenter__(self) -> Tail:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
