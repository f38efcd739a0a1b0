"""OpenTelemetry: a span per append, and its context for the APPEND frame. It costs nothing unless set up."""

from __future__ import annotations

import asyncio
from typing import Any

from quorate.handle import Handle

otel: Any
propagate: Any
try:
    from opentelemetry import propagate
    from opentelemetry import trace as otel
except ImportError:  # the API is an optional dependency
    otel = propagate = None


def context_headers() -> dict[str, str]:
    """Headers that make a call to the API part of the caller's trace, if there is one."""
    headers: dict[str, str] = {}
    if propagate is not None:
        propagate.inject(headers)
    return headers


class Tracing:
    """Makes the spans of one client's appends."""

    def __init__(self, tracer: Any, handle: Handle) -> None:
        self._tracer = tracer
        self._group_id = str(handle.group_id)
        self._links = _links_of(handle.traceparent)

    def start(self, entries: int, size: int) -> tuple[Any, bytes | None]:
        """A span, and its W3C context (25 bytes) if it is sampled."""
        span = self._tracer.start_span(
            "quorate.append",
            kind=otel.SpanKind.PRODUCER,
            attributes={"quorate.group_id": self._group_id, "quorate.entries": entries, "quorate.bytes": size},
            links=self._links,
        )
        context = span.get_span_context()
        if not context.is_valid or not context.trace_flags.sampled:
            return span, None
        packed = context.trace_id.to_bytes(16, "big") + context.span_id.to_bytes(8, "big")
        return span, packed + bytes([context.trace_flags])

    @staticmethod
    def end_with(span: Any, future: asyncio.Future[Any]) -> None:
        """End the span when the append ends, with its offset or its error."""

        def end(done: asyncio.Future[Any]) -> None:
            if done.cancelled():
                span.set_attribute("quorate.outcome", "not awaited")
            elif (error := done.exception()) is not None:
                span.set_attribute("quorate.outcome", type(error).__name__)
                span.set_status(otel.Status(otel.StatusCode.ERROR, str(error)))
            else:
                result = done.result()
                span.set_attribute("quorate.outcome", "acked")
                span.set_attribute("quorate.base_offset", getattr(result, "base_offset", result))
            span.end()

        future.add_done_callback(end)


def tracing_for(handle: Handle, tracer: Any = None) -> Tracing | None:
    """Tracing with the given tracer, or with the global one if a provider was set up; else None."""
    if tracer is not None:
        if otel is None:
            raise RuntimeError("a tracer needs opentelemetry-api: pip install 'quorate[telemetry]'")
        return Tracing(tracer, handle)
    if otel is None:
        return None
    provider = otel.get_tracer_provider()
    if isinstance(provider, (otel.ProxyTracerProvider, otel.NoOpTracerProvider)):
        return None
    return Tracing(provider.get_tracer("quorate"), handle)


def _links_of(traceparent: str | None) -> list[Any]:
    """A link to the request that issued the handle, so that a trace leads from an append to it."""
    parts = (traceparent or "").split("-")
    if len(parts) != 4 or [len(part) for part in parts] != [2, 32, 16, 2]:
        return []
    try:
        trace_id, span_id, flags = int(parts[1], 16), int(parts[2], 16), int(parts[3], 16)
    except ValueError:
        return []
    return [otel.Link(otel.SpanContext(trace_id, span_id, is_remote=True, trace_flags=otel.TraceFlags(flags)))]
