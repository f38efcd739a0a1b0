"""Counters of API and worker. Without an OTLP endpoint they cost a call and are not exported."""

from opentelemetry import metrics
from opentelemetry.metrics import Counter

from quorate_api.observability import metric_names as names
from quorate_api.observability.metric_names import Metric
from quorate_api.observability.readings import SCOPE

TASKS = ("ingest", "events", "reconcile", "month close")


def _counter(metric: Metric) -> Counter:
    return metrics.get_meter(SCOPE).create_counter(metric.name, metric.unit, metric.description)


refusals = _counter(names.REFUSALS)
usage_rejected = _counter(names.USAGE_REJECTED)
task_failures = _counter(names.TASK_FAILURES)
close_failures = _counter(names.CLOSE_FAILURES)


def begin_worker() -> None:
    """Begin the worker's counters at 0: an alert on growth would miss a first failure that created its series."""
    usage_rejected.add(0)
    close_failures.add(0)
    for task in TASKS:
        task_failures.add(0, {"quorate.task": task})


def begin_api(codes: list[str]) -> None:
    for code in codes:
        refusals.add(0, {"error.type": code})
