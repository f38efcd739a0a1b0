"""Whether a server answers clients: a connection, a greeting, a ping. Nothing is attached."""

from __future__ import annotations

import asyncio

from quorate import limits, wire
from quorate.codes import Code
from quorate.errors import ConnectFailed, Failure
from quorate.handle import Tls, split_address
from quorate.trust import client_context, failure_of
from quorate.version import CLIENT_NAME

_READ_BYTES = 4_096


async def knock(address: str, tls: Tls | None = None, timeout: float = limits.HANDSHAKE_TIMEOUT_S) -> int:
    """Connect to a server as clients do, have it answer once, and leave. Returns its id.

    `address`: host:port. `tls`: the fleet's authority. Raises ConnectFailed if no answer comes within `timeout`
    seconds, or one that turns clients away.
    """
    host, port = split_address(address)
    context = client_context(tls.ca_pem) if tls is not None else None
    try:
        async with asyncio.timeout(timeout):
            reader, writer = await asyncio.open_connection(host, port, ssl=context)
            try:
                return await _greet(reader, writer)
            finally:
                writer.transport.abort()  # both sides know that nothing is left
    except (OSError, TimeoutError) as problem:
        raise ConnectFailed(failure_of(problem, address)._replace(retryable=True)) from None
    except wire.WireError as problem:
        raise ConnectFailed(Failure(problem.code, f"{address}: {problem}")) from None


async def _greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
    writer.write(wire.encode(wire.hello(CLIENT_NAME)) + wire.encode(wire.Ping(1)))
    splitter = wire.FrameSplitter(limits.CONNECT_FRAME_BYTES_MAX)
    server_id = None
    while data := await reader.read(_READ_BYTES):
        for frame in splitter.feed(data):
            message = wire.decode(frame)
            if isinstance(message, wire.HelloOk):
                server_id = message.server_id
            elif isinstance(message, wire.Pong) and server_id is not None:
                return server_id
            elif isinstance(message, wire.Goodbye):
                raise ConnectFailed(Failure(message.code, message.message))
            elif not isinstance(message, wire.Ping):
                raise wire.WireError(Code.PROTOCOL_ERROR, f"unexpected {type(message).__name__}")
    raise ConnectionResetError("closed by the server")
