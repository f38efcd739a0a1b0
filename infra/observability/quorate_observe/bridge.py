"""`quorate-observe bridge`: OTLP/HTTP in, Prometheus' text format out, on one machine.

It replaces the OpenTelemetry collector of a fleet (`collector.yaml`) in a local stack. It keeps only metrics, in
memory. Traces are accepted and discarded.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import threading
import time
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from quorate_observe.exposition import Latest, NotCumulative

BODY_BYTES_MAX = 8 << 20
DISCARD_BYTES_MAX = 64 << 20
REQUEST_TIMEOUT_S = 10


class Bridge(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, host: str, port: int) -> None:
        self._latest = Latest()
        self._lock = threading.Lock()
        super().__init__((host, port), _Handler)

    def take(self, request: ExportMetricsServiceRequest) -> None:
        with self._lock:
            self._latest.take(request, time.monotonic())

    def text(self) -> str:
        with self._lock:
            return self._latest.text(time.monotonic())


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = REQUEST_TIMEOUT_S
    server: Bridge

    def do_GET(self) -> None:
        if self.path == "/metrics":
            self._answer(200, self.server.text().encode(), "text/plain; version=0.0.4")
        else:
            self._answer(404)

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > BODY_BYTES_MAX:
            self.close_connection = True
            self._answer(413)
            self._discard(length)
            return
        body = self.rfile.read(int(length))
        if self.path == "/v1/traces":
            self._answer(200)
        elif self.path == "/v1/metrics":
            self._metrics(body)
        else:
            self._answer(404)

    def _discard(self, length: str) -> None:
        """Read the rest of the client's request, up to a bound: closing before its end would lose the answer."""
        left = min(int(length), DISCARD_BYTES_MAX) if length.isdigit() else 0
        while left > 0 and (chunk := self.rfile.read(min(left, 65_536))):
            left -= len(chunk)

    def _metrics(self, body: bytes) -> None:
        try:
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            self.server.take(ExportMetricsServiceRequest.FromString(body))
        except (DecodeError, OSError, zlib.error, NotCumulative) as error:
            self._answer(400, str(error).encode())
            return
        self._answer(200)

    def _answer(self, status: int, body: bytes = b"", kind: str = "application/x-protobuf") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:  # announced, so that the client sends no further request into a closing connection
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Exports and scrapes are not logged."""


def serve(port: int, address_file: Path) -> int:
    """Serve on loopback until a signal ends it. Writes `{"address": host:port}` when it listens."""
    bridge = Bridge("127.0.0.1", port)
    host, chosen = bridge.server_address[:2]
    temporary = address_file.with_suffix(".new")
    temporary.write_text(json.dumps({"address": f"{host!s}:{chosen}"}))
    os.replace(temporary, address_file)
    sys.stdout.write(f"listening address={host!s}:{chosen}\n")
    sys.stdout.flush()
    bridge.serve_forever()
    return 0
