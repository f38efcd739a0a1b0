"""OTLP in, Prometheus' text out."""

import gzip
import threading
from collections.abc import Iterator

import httpx2
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric

from quorate_observe.bridge import Bridge
from quorate_observe.exposition import EXPIRY_S, Latest, NotCumulative

CUMULATIVE = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
DELTA = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA


def request(*metrics: Metric, instance: str = "s1") -> ExportMetricsServiceRequest:
    made = ExportMetricsServiceRequest()
    resource = made.resource_metrics.add()
    for key, value in (("service.name", "quorate-replica"), ("service.instance.id", instance)):
        attribute = resource.resource.attributes.add(key=key)
        attribute.value.string_value = value
    resource.scope_metrics.add().metrics.extend(metrics)
    return made


def counter(value: int, temporality: int = CUMULATIVE, **attributes: str) -> Metric:
    metric = Metric(name="quorate.appends", unit="{batch}", description="Appends.")
    metric.sum.is_monotonic = True
    metric.sum.aggregation_temporality = temporality
    point = metric.sum.data_points.add(as_int=value)
    for name, text in attributes.items():
        point.attributes.add(key=name.replace("__", ".")).value.string_value = text
    return metric


def histogram() -> Metric:
    metric = Metric(name="quorate.commit.duration", unit="s")
    metric.histogram.aggregation_temporality = CUMULATIVE
    metric.histogram.data_points.add(explicit_bounds=[0.001, 0.05], bucket_counts=[3, 2, 1], count=6, sum=0.25)
    return metric


def test_a_counter() -> None:
    latest = Latest()
    latest.take(request(counter(7, quorate__role='he"ad\n')), 0)
    assert latest.text(0) == (
        "# HELP quorate_appends_total Appends.\n# TYPE quorate_appends_total counter\n"
        'quorate_appends_total{instance="s1",job="quorate-replica",quorate_role="he\\"ad\\n"} 7\n'
    )


def test_a_histogram_counts_up() -> None:
    latest = Latest()
    latest.take(request(histogram()), 0)
    lines = latest.text(0).splitlines()[2:]
    assert [line.split("} ")[1] for line in lines] == ["3", "5", "6", "0.25", "6"]
    assert ['le="0.001"' in lines[0], 'le="0.05"' in lines[1], 'le="+Inf"' in lines[2]] == [True] * 3
    assert lines[3].startswith("quorate_commit_duration_seconds_sum{")


def test_what_a_process_no_longer_says_is_gone() -> None:
    latest = Latest()
    latest.take(request(counter(1), histogram()), 0)
    latest.take(request(counter(5), instance="s2"), 0)
    latest.take(request(counter(2)), 1)
    text = latest.text(1)
    assert "commit_duration" not in text
    assert [line.rsplit(" ", 1)[1] for line in text.splitlines() if line[0] != "#"] == ["2", "5"]
    assert text.count("# TYPE") == 1, "one family, whoever it is from"


def test_a_process_that_is_gone_expires() -> None:
    latest = Latest()
    latest.take(request(counter(1)), 0)
    latest.take(request(counter(2), instance="s2"), 20)
    assert 's1"' in latest.text(EXPIRY_S)
    assert 's1"' not in latest.text(EXPIRY_S + 1)
    assert 's2"' in latest.text(EXPIRY_S + 1)


def test_deltas_are_refused() -> None:
    with pytest.raises(NotCumulative, match="not cumulative"):
        Latest().take(request(counter(1, DELTA)), 0)


@pytest.fixture
def bridge() -> Iterator[httpx2.Client]:
    server = Bridge("127.0.0.1", 0)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    with httpx2.Client(base_url=f"http://127.0.0.1:{server.server_address[1]}", trust_env=False) as client:
        yield client
    server.shutdown()
    thread.join(10)
    server.server_close()


def test_over_http(bridge: httpx2.Client) -> None:
    body = request(counter(7)).SerializeToString()
    assert bridge.post("/v1/metrics", content=body).status_code == 200
    assert "quorate_appends_total" in bridge.get("/metrics").text
    packed = gzip.compress(request(counter(8)).SerializeToString())
    assert bridge.post("/v1/metrics", content=packed, headers={"Content-Encoding": "gzip"}).status_code == 200
    assert bridge.get("/metrics").text.splitlines()[-1].endswith(" 8")
    assert bridge.post("/v1/traces", content=b"anything").status_code == 200


@pytest.mark.parametrize(
    ("path", "body", "headers", "status"),
    [
        ("/v1/metrics", b"\xff\xff\xff", {}, 400),
        ("/v1/metrics", b"no gzip", {"Content-Encoding": "gzip"}, 400),
        ("/v1/metrics", request(counter(1, DELTA)).SerializeToString(), {}, 400),
        ("/v1/logs", b"", {}, 404),
    ],
)
def test_what_it_refuses(bridge: httpx2.Client, path: str, body: bytes, headers: dict[str, str], status: int) -> None:
    assert bridge.post(path, content=body, headers=headers).status_code == status
    assert bridge.get("/metrics").status_code == 200, "and goes on"


def test_a_body_that_is_too_large_is_not_read(bridge: httpx2.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorate_observe.bridge.BODY_BYTES_MAX", 10)
    assert bridge.post("/v1/metrics", content=b"12345678901").status_code == 413
    assert bridge.get("/metrics").status_code == 200
