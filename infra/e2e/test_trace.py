"""One trace leads from a customer's span through the handle that the API issued to head and followers."""

from __future__ import annotations

import asyncio
import gzip
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider

import quorate
from quorate_harness.customer import Customer
from quorate_local import Stack, StackOptions

TIMEOUT_S = 20
EXPECTED = ["GET /v1/groups/{group_id}/handle", "quorate.order", "quorate.replicate", "quorate.replicate"]


@pytest.fixture
def collector() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """The endpoint of a small OTLP receiver, and the (trace id, span name) pairs that reached it."""
    spans: list[tuple[str, str]] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            if self.path.endswith("traces"):
                for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                    for scope in resource.scope_spans:
                        spans.extend((span.trace_id.hex(), span.name) for span in scope.spans)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", spans
    server.shutdown()


def test_an_append_is_one_trace(
    own_state: Path, collector: tuple[str, list[tuple[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint, spans = collector
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
    tracer = TracerProvider().get_tracer("customer")
    with Stack(StackOptions(state=own_state, servers=3)) as stack, Customer(stack.api_url, "traced") as customer:
        sla = {"durability": "persistent", "replication_degree": 3, "request_size_bytes": 64, "rate_per_s": 100}
        group = customer.create_group("traced", sla)

        async def append() -> str:
            with tracer.start_as_current_span("customer") as span:
                log = await quorate.connect_group(stack.api_url, customer.api_key, group["id"], tracer=tracer)
                await log.append(b"traced")
                await log.close()
                return format(span.get_span_context().trace_id, "032x")

        trace_id = asyncio.run(append())
        until = time.monotonic() + TIMEOUT_S
        while (found := sorted(name for trace, name in spans if trace == trace_id)) != EXPECTED:
            assert time.monotonic() < until, found
            time.sleep(0.1)
