"""Memory and CPU time of this process, read at each export."""

import os
import time
from collections.abc import Iterable

from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions, Observation

from quorate_api.observability import metric_names as names
from quorate_api.observability.readings import SCOPE

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def observe() -> None:
    def memory(_: CallbackOptions) -> Iterable[Observation]:
        with open("/proc/self/statm", encoding="ascii") as stream:
            return [Observation(int(stream.read().split()[1]) * _PAGE_BYTES)]

    def cpu_time(_: CallbackOptions) -> Iterable[Observation]:
        return [Observation(time.process_time())]

    meter = metrics.get_meter(SCOPE)
    meter.create_observable_gauge(names.MEMORY.name, [memory], names.MEMORY.unit, names.MEMORY.description)
    meter.create_observable_counter(names.CPU_TIME.name, [cpu_time], names.CPU_TIME.unit, names.CPU_TIME.description)
