"""Metrics of OTLP as Prometheus' text format, by the names that `metrics.prometheus_name` gives. Pure.

A process's export replaces its former one: a series that it no longer reports is gone at once. Sums and histograms must
be cumulative, as Quorate's processes send them. Others are refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, HistogramDataPoint, NumberDataPoint
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric as OtlpMetric

from quorate_observe.metrics import Kind, label_name, prometheus_name

EXPIRY_S = 30.0  # three exports; the collector's `metric_expiration` in collector.yaml

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Sample:
    """`suffix`: `_bucket`, `_sum` or `_count` of a histogram, else empty."""

    suffix: str
    labels: Labels
    value: float


@dataclass(frozen=True)
class Family:
    name: str
    kind: Kind
    help: str
    samples: tuple[Sample, ...]


class NotCumulative(Exception):
    """A sum or histogram is not cumulative. The message names it."""


@dataclass
class Latest:
    """Each process's last export and its time (seconds of any steady clock)."""

    _said: dict[tuple[str, str], tuple[float, tuple[Family, ...]]] = field(default_factory=dict)

    def take(self, request: ExportMetricsServiceRequest, now_s: float) -> None:
        for resource in request.resource_metrics:
            attributes = {attribute.key: _text(attribute.value) for attribute in resource.resource.attributes}
            process = attributes.get("service.name", "unknown"), attributes.get("service.instance.id", "")
            common = {"job": process[0], "instance": process[1]}
            found = [metric for scope in resource.scope_metrics for metric in scope.metrics]
            self._said[process] = now_s, tuple(_family(metric, common) for metric in found)

    def text(self, now_s: float) -> str:
        families: dict[str, list[Family]] = {}
        for said_s, said in self._said.values():
            if now_s - said_s <= EXPIRY_S:
                for family in said:
                    families.setdefault(family.name, []).append(family)
        return "".join(line + "\n" for name in sorted(families) for line in _lines(families[name]))


def _family(metric: OtlpMetric, common: Mapping[str, str]) -> Family:
    shape = metric.WhichOneof("data")
    if shape == "histogram":
        _require_cumulative(metric.name, metric.histogram.aggregation_temporality)
        kind: Kind = "histogram"
        samples = [each for point in metric.histogram.data_points for each in _histogram(point, common)]
    elif shape == "sum":
        _require_cumulative(metric.name, metric.sum.aggregation_temporality)
        kind = "counter" if metric.sum.is_monotonic else "gauge"
        samples = [_number(point, common) for point in metric.sum.data_points]
    else:
        kind = "gauge"
        samples = [_number(point, common) for point in metric.gauge.data_points]
    name = prometheus_name(metric.name, metric.unit, kind)
    return Family(name, kind, metric.description, tuple(samples))


def _require_cumulative(name: str, temporality: int) -> None:
    if temporality != AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE:
        raise NotCumulative(f"{name} is not cumulative")


def _number(point: NumberDataPoint, common: Mapping[str, str]) -> Sample:
    value = point.as_int if point.WhichOneof("value") == "as_int" else point.as_double
    return Sample("", _labels(point.attributes, common), float(value))


def _histogram(point: HistogramDataPoint, common: Mapping[str, str]) -> Iterator[Sample]:
    labels = _labels(point.attributes, common)
    total = 0
    for bound, count in zip([*point.explicit_bounds, math.inf], point.bucket_counts, strict=True):
        total += count
        edge = "+Inf" if math.isinf(bound) else f"{bound:g}"
        yield Sample("_bucket", (*labels, ("le", edge)), total)
    yield Sample("_sum", labels, point.sum)
    yield Sample("_count", labels, point.count)


def _labels(attributes: Iterable[KeyValue], common: Mapping[str, str]) -> Labels:
    own = {label_name(attribute.key): _text(attribute.value) for attribute in attributes}
    return tuple(sorted({**common, **own}.items()))


def _text(value: AnyValue) -> str:
    which = value.WhichOneof("value")
    return str(getattr(value, which)) if which else ""


def _lines(families: list[Family]) -> Iterator[str]:
    first = families[0]
    yield f"# HELP {first.name} {first.help.replace(chr(92), chr(92) * 2).replace(chr(10), ' ')}"
    yield f"# TYPE {first.name} {first.kind}"
    for family in families:
        for sample in family.samples:
            labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in sample.labels)
            yield f"{family.name}{sample.suffix}{{{labels}}} {sample.value:.17g}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
