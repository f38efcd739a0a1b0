"""A client that can misbehave: hand-made frames, over a socket with or without TLS."""

from __future__ import annotations

import secrets
import socket
import ssl
import uuid
from typing import Any, TypeVar
from zlib import crc32

from quorate import wire
from quorate.trust import client_context

TIMEOUT_S = 5.0
CHANNEL = 7

M = TypeVar("M")


class WireClient:
    """One connection to one server. Every wait is bounded by `timeout_s`."""

    def __init__(
        self,
        handle: dict[str, Any],
        hello: bool = True,
        plaintext: bool = False,
        timeout_s: float = TIMEOUT_S,
        address: str | None = None,
    ) -> None:
        """Connect to the handle's head, or to the server at `address`, with the handle's authority."""
        host, port = (address or head_address(handle)).rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), timeout=timeout_s)
        if not plaintext:
            context = client_context(handle["tls"]["ca_pem"])
            self._socket = context.wrap_socket(self._socket, server_hostname=host)
        self._frames: list[wire.Frame] = []
        self._splitter = wire.FrameSplitter(64 << 20)
        if hello:
            self.send(wire.encode(wire.hello("e2e")))
            self.limits = self.expect(wire.HelloOk)

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def attach(self, group: str, token: str, session: int | None = None) -> Any:
        """Attach; answers ATTACHED, or the REFUSED or GOODBYE that came instead. The session is random unless given."""
        self.session = secrets.randbits(63) | 1 if session is None else session
        self.send(wire.encode(wire.Attach(uuid.UUID(group), self.session, token), CHANNEL))
        return self.receive()

    def append(self, seq: int, entries: list[bytes], **changes: Any) -> Any:
        """The answer to one APPEND; `changes` replace its fields."""
        self.send(append_frame(seq, entries, **changes))
        return self.receive()

    def receive(self) -> Any:
        """The next message except NOTICE, which may come at any time; None if the server has closed."""
        while True:
            while not self._frames:
                try:
                    data = self._socket.recv(1 << 16)
                except (ConnectionResetError, ssl.SSLEOFError):
                    return None
                if not data:
                    return None
                self._frames += self._splitter.feed(data)
            message = wire.decode(self._frames.pop(0))
            if not isinstance(message, wire.Notice):
                return message

    def expect(self, kind: type[M]) -> M:
        message = self.receive()
        assert isinstance(message, kind), f"expected {kind.__name__}, got {message}"
        return message

    def shut_writing(self) -> None:
        socket.socket.shutdown(self._socket, socket.SHUT_WR)  # an SSLSocket would forget TLS for reading, too

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> WireClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def append_frame(seq: int, entries: list[bytes], **changes: Any) -> bytes:
    payload = wire.pack_entries(entries)
    fields: dict[str, Any] = {
        "seq": seq,
        "floor_index": 0,
        "timeout_ms": 4000,
        "entry_count": len(entries),
        "payload_len": len(payload),
        "payload_crc": crc32(payload),
        "expected_offset": wire.NO_EXPECTED_OFFSET,
        "fencing_token": 0,
        "payload": payload,
        **changes,
    }
    return wire.encode(wire.Append(**fields), CHANNEL)


def head_address(handle: dict[str, Any]) -> str:
    return str(next(e["address"] for e in handle["endpoints"] if e["role"] in ("head", "sole")))
