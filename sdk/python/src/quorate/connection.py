"""One TCP connection to one replica: handshake, frames in and out, liveness. It never retries."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol, cast

from quorate import limits, wire
from quorate.codes import Code
from quorate.errors import Failure
from quorate.handle import Handle
from quorate.version import CLIENT_NAME

log = logging.getLogger("quorate")

CHANNEL = 1
"""The channel of the connection's one group."""


class ConnectionUser(Protocol):
    """Receives a connection's events, always in the event loop's thread."""

    def on_attached(self, attached: wire.Attached) -> None: ...
    def on_attach_refused(self, refused: wire.Refused) -> None: ...
    def on_frame(self, frame: wire.Frame) -> None: ...
    def on_read(self) -> None:
        """All frames that arrived together have been delivered."""

    def awaits_answer(self) -> bool: ...


class Connection(asyncio.Protocol):
    """`closed` ends with the reason. Until then `user` receives the events."""

    def __init__(self, loop: asyncio.AbstractEventLoop, user: ConnectionUser, handle: Handle, session: int) -> None:
        self.closed: asyncio.Future[Failure] = loop.create_future()
        self.silent = False
        """Whether it was closed because the server did not answer."""
        self._loop = loop
        self._user = user
        self._handle = handle
        self._session = session
        self._transport: asyncio.Transport | None = None
        self._splitter = wire.FrameSplitter(limits.CONNECT_FRAME_BYTES_MAX)
        self._handshaken = False
        self._attached = False
        self._reason: Failure | None = None
        self._heard_at = loop.time()
        self._silent_ticks = 0
        self._pinged = False
        self._timer: asyncio.TimerHandle | None = None

    # Calls of the user.

    @property
    def closing(self) -> bool:
        """Whether sending is over: a frame sent now would count as sent and never arrive."""
        return self._reason is not None

    @property
    def made(self) -> bool:
        """Whether it is connected, or was: only then does `closed` end."""
        return self._transport is not None

    def write(self, pieces: list[bytes]) -> None:
        if self._transport is not None:
            self._transport.writelines(pieces)

    def send(self, message: wire.Message) -> None:
        self.write([wire.encode(message, CHANNEL)])

    def close(self, reason: Failure, goodbye: Code | None = None) -> None:
        """Close now. `goodbye` sends the reason first."""
        if self._reason is None:
            self._reason = reason
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if goodbye is None:
            # The buffers hold batches that are sent again elsewhere.
            transport.abort()
        else:
            self._end_with(transport, wire.encode(wire.Goodbye(goodbye, reason.message[:200])))

    def detach(self) -> None:
        """Close after all written bytes have left."""
        if self._reason is None:
            self._reason = Failure(Code.CLIENT_CLOSED)
        if self._transport is not None and not self._transport.is_closing():
            self._end_with(self._transport, wire.encode(wire.Detach(), CHANNEL))

    def _end_with(self, transport: asyncio.Transport, last: bytes) -> None:
        """Flush the last frames, but do not wait long for a peer that does not read them."""
        transport.write(last)
        transport.close()
        self._loop.call_later(limits.LAST_WORDS_S_MAX, transport.abort)

    # Events of asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        attach = wire.Attach(self._handle.group_id, self._session, self._handle.token)
        hello = wire.encode(wire.hello(CLIENT_NAME))
        self._transport.write(hello + wire.encode(attach, CHANNEL))
        self._heard_at = self._loop.time()
        self._timer = self._loop.call_later(limits.LIVENESS_TICK_S, self._tick)

    def data_received(self, data: bytes) -> None:
        self._heard_at = self._loop.time()
        self._silent_ticks = 0
        self._pinged = False
        try:
            for frame in self._splitter.feed(data):
                if self._reason is not None:
                    return
                self._on_frame(frame)
        except wire.WireError as problem:
            log.warning("the server broke the protocol: %s", problem)
            self.close(Failure(problem.code, str(problem)), goodbye=problem.code)
            return
        if self._reason is None:
            self._user.on_read()

    def connection_lost(self, error: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        reason = self._reason or Failure(
            Code.NO_CONNECTION, f"the connection was lost: {error or 'closed by the server'}"
        )
        if not self.closed.done():
            self.closed.set_result(reason)

    # Frames.

    def _on_frame(self, frame: wire.Frame) -> None:
        kind = frame.kind
        if kind == wire.Kind.ACKED and self._attached:
            self._user.on_frame(frame)
            return
        if kind in (wire.Kind.HELLO_OK, wire.Kind.PING, wire.Kind.PONG, wire.Kind.GOODBYE):
            self._on_connection_frame(wire.decode(frame))
            return
        if not self._handshaken:
            raise wire.WireError(Code.PROTOCOL_ERROR, f"{wire.Kind(kind).name} before HELLO_OK")
        if frame.channel != CHANNEL:
            raise wire.WireError(Code.UNKNOWN_CHANNEL, f"channel {frame.channel} was not attached")
        if not self._attached:
            self._on_attach_answer(wire.decode(frame))
        else:
            self._user.on_frame(frame)

    def _on_connection_frame(self, message: wire.Message) -> None:
        if isinstance(message, wire.Ping):
            self.write([wire.encode(wire.Pong(message.nonce))])
        elif isinstance(message, wire.Goodbye):
            self.close(Failure(message.code, message.message))
        elif isinstance(message, wire.HelloOk):
            if self._handshaken or not wire.OLDEST_VERSION <= message.version <= wire.VERSION:
                raise wire.WireError(Code.PROTOCOL_ERROR, f"unexpected HELLO_OK of version {message.version}")
            self._handshaken = True
            self._splitter.max_frame_bytes = min(message.max_frame_bytes, limits.FRAME_BYTES_CEILING)

    def _on_attach_answer(self, message: wire.Message) -> None:
        if isinstance(message, wire.Attached):
            self._attached = True
            self._user.on_attached(message)
        elif isinstance(message, wire.Refused) and message.op == wire.Kind.ATTACH:
            self._user.on_attach_refused(message)
        else:
            raise wire.WireError(Code.PROTOCOL_ERROR, f"{type(message).__name__} before ATTACHED")

    # Liveness.

    def _tick(self) -> None:
        now = self._loop.time()
        self._timer = self._loop.call_later(limits.LIVENESS_TICK_S, self._tick)
        if not self._attached:
            if now - self._heard_at > limits.HANDSHAKE_TIMEOUT_S:
                self._give_up("it did not complete the handshake in time")
            return
        if not self._user.awaits_answer() and not self._pinged:
            self._silent_ticks = 0
            if now - self._heard_at > limits.IDLE_PING_S:
                self._ping()
            return
        self._silent_ticks += 1
        if self._silent_ticks > limits.SILENT_TICKS_MAX:
            self._give_up("nothing came back for most of a second")
        elif self._silent_ticks > limits.PING_AFTER_TICKS and not self._pinged:
            self._ping()

    def _ping(self) -> None:
        self._pinged = True
        self.write([wire.encode(wire.Ping(1))])

    def _give_up(self, reason: str) -> None:
        self.silent = True
        self.close(Failure(Code.NO_CONNECTION, reason))
