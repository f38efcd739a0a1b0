"""The shell around `writer.Writer`: futures, timers and the connection to the head."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from quorate import wire
from quorate.codes import Code
from quorate.errors import AppendUnknown, Failure, append_refused
from quorate.handle import Limits
from quorate.link import Link
from quorate.pacing import Pacing
from quorate.writer import Acked, Action, Failed, Reroute, Writer

log = logging.getLogger("quorate")

_NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Appended:
    """Entries ordered as one, with `count` consecutive offsets from `base_offset`."""

    base_offset: int
    count: int


@dataclass(slots=True)
class _Call:
    """A call with a batch of its own."""

    future: asyncio.Future[Any]
    many: bool


def random_session() -> int:
    return secrets.randbits(64) or 1


class Appender:
    link: Link

    def __init__(
        self, loop: asyncio.AbstractEventLoop, size_limits: Limits, answer_wait_s: float, pacing: Pacing | None
    ) -> None:
        self.writer = Writer(size_limits, random_session, answer_wait_s, pacing)
        self._pacing = pacing
        self._loop = loop
        self._scheduled = False
        self._now = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = _NEVER
        self._waiters: list[asyncio.Future[None]] = []
        self._closed = False

    # Calls.

    def append(self, entry: bytes, timeout_s: float, trace: bytes | None = None) -> asyncio.Future[int]:
        future: asyncio.Future[int] = self._loop.create_future()
        if not self._scheduled:
            self._schedule()
        failure = self.writer.append(future, entry, self._now + timeout_s)
        if failure is not None or self._closed:
            self._refuse(future, failure)
        elif trace is not None:
            self.writer.trace_last(trace)
        return future

    def append_alone(
        self,
        entries: Sequence[bytes],
        many: bool,
        timeout_s: float,
        expected_offset: int | None,
        fencing_token: int | None,
        trace: bytes | None,
    ) -> asyncio.Future[Any]:
        """Append entries ordered as one, on a condition if one is given. The result is Appended, or an offset
        unless `many`."""
        future: asyncio.Future[Any] = self._loop.create_future()
        if not self._scheduled:
            self._schedule()
        expected = wire.NO_EXPECTED_OFFSET if expected_offset is None else expected_offset
        deadline = self._now + timeout_s
        call = _Call(future, many)
        failure = self.writer.append_many(call, entries, deadline, expected, fencing_token or 0, trace)
        if failure is not None or self._closed:
            self._refuse(future, failure)
        return future

    def _refuse(self, future: asyncio.Future[Any], failure: Failure | None) -> None:
        if failure is not None:
            future.set_exception(append_refused(failure))
        if self._closed:
            self._execute(self.writer.fail_all(Failure(Code.CLIENT_CLOSED)))

    async def wait_ready(self) -> None:
        """Wait until little enough is pending (`Writer.has_room`)."""
        while not (self.writer.has_room() or self._closed):
            await self._wait()

    async def wait_drained(self) -> None:
        """Wait until every append has ended. Each ends by its deadline."""
        while self.writer.pending_calls > 0:
            await self._wait()

    def close(self) -> None:
        self._closed = True
        self._execute(self.writer.fail_all(Failure(Code.CLIENT_CLOSED)))
        if self._timer is not None:
            self._timer.cancel()

    async def _wait(self) -> None:
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiters.append(waiter)
        await waiter

    # Sending.

    def _schedule(self) -> None:
        """Send at the end of this turn of the event loop, so that all appends of the turn share a batch."""
        self._scheduled = True
        self._now = self._loop.time()
        self._loop.call_soon(self._flush_scheduled)

    def _flush_scheduled(self) -> None:
        self._scheduled = False
        self._flush()

    def _flush(self) -> None:
        connection = self.link.connection
        if connection is None:
            if self.busy():
                self.link.want()
        else:
            frames = self.writer.take_frames(self._loop.time())
            if frames:
                connection.write(frames)
            if self.writer.hint is not None:
                log.warning("%s: %s", self.link.handle.name, self.writer.hint)
                self.writer.hint = None
        self._arm()

    def _arm(self) -> None:
        wake_at = self.writer.wake_at()
        if wake_at >= self._timer_at or self._closed:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = wake_at
        self._timer = self._loop.call_at(wake_at, self._on_timer)

    def _on_timer(self) -> None:
        self._timer_at, self._timer = _NEVER, None
        self._execute(self.writer.on_time(self._loop.time()))
        self._flush()

    # Port.

    @property
    def session(self) -> int:
        return self.writer.session

    def on_attached(self, attached: wire.Attached) -> Reroute | None:
        if self._pacing is not None:
            handle = self.link.handle
            self._pacing.renew(handle.charges, handle.request_size_bytes)
        actions = self.writer.on_attached(attached, channel=1)
        reroute = next((action for action in actions if isinstance(action, Reroute)), None)
        self._execute([action for action in actions if action is not reroute])
        return reroute

    def on_ready(self) -> None:
        self._flush()

    def on_frame(self, frame: wire.Frame) -> None:
        message = wire.decode(frame)
        if isinstance(message, wire.Acked):
            self._execute(self.writer.on_acked(message.acks))
            self.link.progressed()
        elif isinstance(message, wire.Refused) and message.op == wire.Kind.APPEND:
            self._execute(self.writer.on_refused(message, self._loop.time()))
        elif isinstance(message, wire.Notice):
            self.link.saw_epoch(message.epoch)
            self._execute(self.writer.on_notice(message))
        else:
            raise wire.WireError(Code.PROTOCOL_ERROR, f"unexpected {type(message).__name__}")

    def on_read(self) -> None:
        self._flush()

    def on_detached(self, failure: Failure) -> None:
        self.writer.on_detached(failure)

    def on_hopeless(self, failure: Failure) -> None:
        self._execute(self.writer.fail_all(failure))

    def awaits_answer(self) -> bool:
        return self.writer.awaits_answer()

    def busy(self) -> bool:
        return not self.writer.idle()

    # Actions.

    def _execute(self, actions: list[Action]) -> None:
        for action in actions:
            if isinstance(action, Acked):
                _resolve(action)
            elif isinstance(action, Failed):
                _fail(action)
            else:
                self.link.reroute(action)
        if self._waiters and actions and (self.writer.has_room() or self._closed):
            waiters, self._waiters = self._waiters, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)


def _resolve(acked: Acked) -> None:
    offset = acked.base_offset
    if acked.alone:
        call: _Call = acked.calls[0]
        if not call.future.done():
            call.future.set_result(Appended(offset, acked.entry_count) if call.many else offset)
        return
    for future in acked.calls:
        # A caller may have stopped waiting. The entry is appended nevertheless.
        if not future.done():
            future.set_result(offset)
        offset += 1


def _fail(failed: Failed) -> None:
    for call in failed.calls:
        future = call.future if isinstance(call, _Call) else call
        if not future.done():
            error = AppendUnknown(failed.failure) if failed.unknown else append_refused(failed.failure)
            future.set_exception(error)
