"""Keeps one connection to a group's replicas alive: dials the route's address, attaches, starts again.

The shell around `route.Route`: it owns the clock, the sockets and the waits. Its port (`appender.Appender` or
`reader.Reader`) sends and receives the frames.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol

from quorate import limits, wire
from quorate.codes import CODES, Code
from quorate.connection import Connection
from quorate.errors import ConnectFailed, Failure
from quorate.handle import Handle, split_address
from quorate.route import Dial, OneAddress, Refresh, Route
from quorate.trust import client_context, failure_of
from quorate.writer import Reroute

log = logging.getLogger("quorate")

HandleSource = Callable[[], Awaitable[Handle]]


class Handles:
    """The current handle, shared by a client's links. One caller at a time refreshes it."""

    def __init__(self, handle: Handle, source: HandleSource | None) -> None:
        self.handle = handle
        self.version = 0
        self.epoch = handle.epoch
        """The newest epoch in any answer. Replicas with an older one are stale."""
        self._source = source
        self._lock = asyncio.Lock()

    @property
    def refreshable(self) -> bool:
        return self._source is not None

    def expires_soon(self) -> bool:
        expires = self.handle.token_expires_at
        margin = timedelta(seconds=limits.TOKEN_MARGIN_S)
        return expires is not None and expires - datetime.now(UTC) < margin

    async def refresh(self, known_version: int) -> None:
        """Get a newer handle than the one of `known_version`. The source's exceptions pass through."""
        async with self._lock:
            if self._source is None or self.version > known_version:
                return
            handle = await asyncio.wait_for(self._source(), limits.TIMEOUT_S_DEFAULT)
            self.handle = handle
            self.epoch = max(self.epoch, handle.epoch)
            self.version += 1


class Port(Protocol):
    """The user of a link's connection."""

    link: Link

    @property
    def session(self) -> int: ...
    def on_attached(self, attached: wire.Attached) -> Reroute | None: ...
    def on_ready(self) -> None:
        """The link has an attached connection from now on."""

    def on_frame(self, frame: wire.Frame) -> None: ...
    def on_read(self) -> None: ...
    def on_detached(self, failure: Failure) -> None: ...
    def on_hopeless(self, failure: Failure) -> None:
        """No retry will help: fail every waiting call. The next call starts the link again."""

    def awaits_answer(self) -> bool: ...
    def busy(self) -> bool:
        """Whether the port needs a connection now."""


class Link:
    def __init__(self, port: Port, handles: Handles, only: str | None = None) -> None:
        """`only`: the address of the one replica to connect to."""
        self._port = port
        port.link = self
        self._handles = handles
        self._only = only
        self._seen_version = handles.version
        self._route = self._new_route()
        self._wanted = asyncio.Event()
        self._waiters: list[asyncio.Future[None]] = []
        self._connection: Connection | None = None
        self._address = ""
        self._attached = False
        self._closing = False
        self._rejections = 0
        self._left = False
        self._unreachable = ""
        """The address whose dial or connection failed last, or which reported that it is isolated."""
        self._waiting: asyncio.TimerHandle | None = None
        """Set while attached to a follower whose head is unreachable. It sends a notice of a new head at once."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name="quorate-link")

    # Calls of the port and the client.

    @property
    def handle(self) -> Handle:
        """The current handle."""
        return self._handles.handle

    @property
    def connection(self) -> Connection | None:
        """The attached connection, or None."""
        if self._connection is None or not self._attached or self._connection.closing:
            return None
        return self._connection

    def want(self) -> None:
        """The port has work: connect unless connected."""
        self._wanted.set()

    async def wait_attached(self, timeout_s: float) -> None:
        """Connect and attach. Raises ConnectFailed."""
        self.want()
        if self._attached:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await asyncio.wait_for(waiter, timeout_s)
        except TimeoutError:
            raise ConnectFailed(self.reason._replace(retryable=True)) from None
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    def progressed(self) -> None:
        """The connection has answered."""
        self._route.progressed()

    def reroute(self, reroute: Reroute) -> None:
        """Leave the connection for another."""
        log.info("leaving %s: %s", self._address, reroute.reason)
        if reroute.to == "head":
            self._route.avoid(self._address)
            self._route.redirect(reroute.address)
        elif reroute.to == "handle":
            self._look_elsewhere()
        elif reroute.to == "other":
            self._route.avoid(self._address)
        self._left = True
        if self._connection is not None:
            self._connection.close(Failure(Code.NO_CONNECTION, f"left {self._address}: {reroute.reason}"))

    def saw_epoch(self, epoch: int) -> None:
        self._handles.epoch = max(self._handles.epoch, epoch)

    async def close(self) -> None:
        self._closing = True
        if self._connection is not None and self._connection.made:
            self._connection.detach()
            await self._connection.closed
        self._task.cancel()  # a dial that is under way, too
        await asyncio.gather(self._task, return_exceptions=True)
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(ConnectFailed(Failure(Code.CLIENT_CLOSED)))

    reason: Failure = Failure(Code.NO_CONNECTION, "not connected yet")
    """The reason why the link is not attached."""

    # The loop.

    async def _run(self) -> None:
        while not self._closing:
            await self._wanted.wait()
            try:
                address = await self._next_address()
                if address is not None:
                    await self._use(address)
                if not self._port.busy() and not self._waiters:
                    # The port needs no connection: do not dial a fleet that may be gone.
                    self._wanted.clear()
            except Exception:
                # A defect must not leave callers waiting: it is logged, and the link continues.
                log.exception("the link failed")
                await asyncio.sleep(limits.BACKOFF_MAX_S)

    def _new_route(self) -> Route:
        if self._only is not None:
            return OneAddress(self._only, random.random)
        return Route(self._handles.handle.addresses(), self._handles.refreshable, random.random)

    async def _next_address(self) -> str | None:
        """Wait as the route says, then return the address to dial; None after a refresh."""
        if self._handles.expires_soon():
            self._route.want_handle()
        step = self._route.next(asyncio.get_running_loop().time())
        if step.delay_s > 0.0:
            await asyncio.sleep(step.delay_s)
        if isinstance(step, Dial):
            return step.address
        assert isinstance(step, Refresh)
        try:
            await self._handles.refresh(self._seen_version)
        except Exception as problem:  # the source is the caller's code
            log.warning("no new handle: %s", problem)
            self._note(Failure(Code.NO_CONNECTION, f"no new handle: {problem}"))
            if getattr(problem, "status", None) == 404:  # the API's answer: waiting does not bring it back
                message = "the group was deleted, or the API key may not see it any more"
                self._give_up(Failure(Code.GROUP_NOT_HERE, message))
        if self._handles.version != self._seen_version:
            self._seen_version = self._handles.version
            self._route.replace(self._handles.handle.addresses())
        return None

    async def _use(self, address: str) -> None:
        """Dial, attach, and wait until the connection ends."""
        loop = asyncio.get_running_loop()
        connection = Connection(loop, self, self._handles.handle, self._port.session)
        host, port = split_address(address)
        # Set before dialling: a quick server's ATTACHED arrives before create_connection returns.
        self._connection, self._address, self._left = connection, address, False
        try:
            tls = self._handles.handle.tls
            context = client_context(tls.ca_pem) if tls else None
            dialling = loop.create_connection(lambda: connection, host, port, ssl=context)
            await asyncio.wait_for(dialling, limits.DIAL_TIMEOUT_S)
        except (OSError, TimeoutError) as problem:
            self._connection = None
            self._on_not_connected(failure_of(problem, address))
            return
        try:
            failure = await connection.closed
        finally:
            was_attached, self._attached, self._connection = self._attached, False, None
            self._stop_waiting()
        if not self._left and failure.code == Code.NO_CONNECTION:
            self._unreachable = address
        self._note(failure._replace(message=f"{address}: {failure.message}") if failure.message else failure)
        if was_attached:
            self._route.lost()
            if connection.silent or failure.code != Code.NO_CONNECTION:
                self._route.avoid(address)
            self._port.on_detached(self.reason)
        if failure.code in (Code.UNSUPPORTED_VERSION, Code.TLS_REQUIRED):
            self._give_up(failure)

    def _on_not_connected(self, failure: Failure) -> None:
        self._note(failure)
        self._unreachable = self._address
        if failure.code == Code.SERVER_UNTRUSTED:
            log.warning("a server is not trusted: %s", failure.message)
            self._route.avoid(self._address)
            self._rejected(failure)

    def _rejected(self, failure: Failure) -> None:
        """The handle is refused, and so it would be at any replica. A fresh one may be refused once during a key
        rotation."""
        self._route.want_handle()
        self._rejections += 1
        if not self._handles.refreshable or self._rejections > 2:
            self._rejections = 0
            self._give_up(failure._replace(retryable=False))

    def _note(self, failure: Failure) -> None:
        """Remember why there is no connection."""
        log.info("no connection: %s", failure.message)
        self.reason = Failure(Code.NO_CONNECTION, failure.message or CODES[Code.NO_CONNECTION].meaning, True)

    def _give_up(self, failure: Failure) -> None:
        self._wanted.clear()
        self.reason = failure
        self._route = self._new_route()
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(ConnectFailed(failure))
        self._waiters.clear()
        self._port.on_hopeless(failure)

    # Events of the connection.

    def on_attached(self, attached: wire.Attached) -> None:
        if attached.epoch < self._handles.epoch:
            self.reroute(Reroute("other", reason=f"its epoch {attached.epoch} is not the newest"))
            return
        self._handles.epoch = attached.epoch
        reroute = self._port.on_attached(attached)
        if reroute is not None:
            self._wait_or_leave(reroute)
            return
        log.debug("attached to %s in epoch %d", self._address, attached.epoch)
        self._attached = True
        self._rejections = 0
        self._unreachable = ""
        self._route.attached(self._address)
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()
        self._port.on_ready()

    def on_attach_refused(self, refused: wire.Refused) -> None:
        failure = Failure(refused.code, refused.message, refused.retry != wire.RetryHint.NEVER)
        assert self._connection is not None
        self._connection.close(failure._replace(message=_describe(refused)))
        self._route.avoid(self._address)
        if refused.retry == wire.RetryHint.HEAD:
            self._route.redirect(refused.head)
        elif refused.retry == wire.RetryHint.HERE:
            self._route.wait_at_least(refused.retry_after_ms / 1e3)
        elif refused.retry == wire.RetryHint.HANDLE:
            if refused.code == Code.CUT_OFF:
                self._look_elsewhere()
                return
            self._route.want_handle()
            if refused.code in (Code.TOKEN_INVALID, Code.TOKEN_EXPIRED, Code.TOKEN_REVOKED):
                self._rejected(failure)
        else:
            self._give_up(failure)

    def on_frame(self, frame: wire.Frame) -> None:
        if self._waiting is None:
            self._port.on_frame(frame)
            return
        message = wire.decode(frame)
        if not isinstance(message, wire.Notice):
            raise wire.WireError(Code.PROTOCOL_ERROR, f"unexpected {type(message).__name__}")
        self.saw_epoch(message.epoch)
        head = self._address if message.role in (wire.Role.HEAD, wire.Role.SOLE) else message.head
        if head and head != self._unreachable:
            self.reroute(Reroute("head", head, "there is a new head"))

    # A dead or isolated head.

    def _look_elsewhere(self) -> None:
        """Treat the head here, isolated or no member any more, as an unreachable one: others may still name it."""
        self._route.avoid(self._address)
        self._route.want_handle()
        self._unreachable = self._address

    def _wait_or_leave(self, reroute: Reroute) -> None:
        """Leave a replica that is not the head, or wait there if the head that it names is unreachable. Its notice of
        the new head comes sooner than an answer of replicas asked in turn with growing delays."""
        if reroute.to != "head" or not reroute.address or reroute.address != self._unreachable:
            self.reroute(reroute)
            return
        log.debug("waiting at %s for a new head", self._address)
        loop = asyncio.get_running_loop()
        self._waiting = loop.call_later(limits.NEW_HEAD_WAIT_S_MAX, self.reroute, reroute)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def on_read(self) -> None:
        if self._attached:
            self._port.on_read()

    def awaits_answer(self) -> bool:
        return self._attached and self._port.awaits_answer()


def _describe(refused: wire.Refused) -> str:
    info = CODES.get(refused.code)
    name = info.name if info else str(refused.code)
    return f"attach refused: {name}" + (f" ({refused.message})" if refused.message else "")
