"""Current values: their readers set them, and each export takes them as they are.

A value that could not be read is dropped, so that no export shows an old value as a current one.
"""

from collections.abc import Iterable, Mapping

from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions, Meter, Observation

from quorate_api.observability.metric_names import Metric

SCOPE = "quorate"

Values = Mapping[str, float]  # value of the metric's one attribute → the metric's value


class Readings:
    """Gauges, and counters whose sums are kept elsewhere. Create it after telemetry is configured."""

    def __init__(self, meter: Meter | None = None) -> None:
        self._meter = meter or metrics.get_meter(SCOPE)
        self._current: dict[str, list[Observation]] = {}

    def add(self, metric: Metric) -> None:
        def observe(_: CallbackOptions) -> Iterable[Observation]:
            return list(self._current.get(metric.name, []))

        make = (
            self._meter.create_observable_counter if metric.kind == "counter" else self._meter.create_observable_gauge
        )
        make(metric.name, [observe], metric.unit, metric.description)

    def set(self, metric: Metric, value: float) -> None:
        self._current[metric.name] = [Observation(value)]

    def set_each(self, metric: Metric, attribute: str, values: Values) -> None:
        self._current[metric.name] = [Observation(value, {attribute: name}) for name, value in values.items()]

    def drop(self, *metrics: Metric) -> None:
        for metric in metrics:
            self._current.pop(metric.name, None)
