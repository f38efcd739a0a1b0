"""OpenTelemetry: traces and metrics over OTLP/HTTP if an endpoint is set, else none."""

import os
import socket

from fastapi import FastAPI
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api.observability import process
from quorate_api.settings import Settings


def configure(settings: Settings, service_name: str) -> None:
    """Set the global providers. The exporters read their endpoint from OTEL_EXPORTER_OTLP_ENDPOINT."""
    if not settings.otlp_endpoint:
        return
    # OpenTelemetry's stable names; the instrumentation's default is the old ones.
    os.environ.setdefault("OTEL_SEMCONV_STABILITY_OPT_IN", "http")
    from opentelemetry import metrics, trace  # noqa: PLC0415 - costs 0.3 s, only where it is wanted
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter  # noqa: PLC0415
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
    from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader  # noqa: PLC0415
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    host = socket.gethostname()
    instance = settings.worker_name or host if service_name == "quorate-worker" else f"{host}:{settings.port}"
    attributes = {"service.name": service_name, "service.instance.id": instance}
    resource = Resource.create(attributes)
    tracer_provider = TracerProvider(resource=resource)
    tracer_provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(tracer_provider)
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(), export_interval_millis=10_000)
    metrics.set_meter_provider(MeterProvider(resource=resource, metric_readers=[reader]))
    process.observe()


def instrument(app: FastAPI, settings: Settings, engine: AsyncEngine) -> None:
    if not settings.otlp_endpoint:
        return
    from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor  # noqa: PLC0415
    from opentelemetry.instrumentation.sqlalchemy import SQLAlchemyInstrumentor  # noqa: PLC0415

    FastAPIInstrumentor.instrument_app(app, excluded_urls="v1/health,v1/ready", exclude_spans=["receive", "send"])
    SQLAlchemyInstrumentor().instrument(engine=engine.sync_engine)


def shutdown(settings: Settings) -> None:
    """Send pending data. The exporters' own timeouts bound it."""
    if not settings.otlp_endpoint:
        return
    from opentelemetry import metrics, trace  # noqa: PLC0415
    from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415

    tracers, meters = trace.get_tracer_provider(), metrics.get_meter_provider()
    if isinstance(tracers, TracerProvider):
        tracers.shutdown()
    if isinstance(meters, MeterProvider):
        meters.shutdown()
