"""Metrics of PostgreSQL, Redis and the coordinator: up, duration of the probe, connections in use."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping

from opentelemetry.instrumentation.utils import suppress_instrumentation
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.pool import QueuePool

from quorate_api import limits
from quorate_api.health.schemas import Dependency
from quorate_api.observability import metric_names as names
from quorate_api.observability.readings import Readings

ATTRIBUTE = "quorate.dependency"
Probe = Callable[[], Awaitable[Dependency]]


class Dependencies:
    """`probes` by name. Each answers within `health.service.PROBE_TIMEOUT_S`."""

    def __init__(self, readings: Readings, engine: AsyncEngine, probes: Mapping[str, Probe]) -> None:
        self._readings, self._engine, self._probes = readings, engine, probes
        for metric in (names.DEPENDENCY_UP, names.DEPENDENCY_DURATION, names.DATABASE_CONNECTIONS):
            readings.add(metric)

    async def run(self) -> None:
        """Run every probe once. An absent dependency raises no exception."""
        with suppress_instrumentation():  # traces of probes would hide those of requests
            found = await asyncio.gather(*(self._timed(probe) for probe in self._probes.values()))
        answers = dict(zip(self._probes, found, strict=True))
        up = {name: float(dependency.state == "ok") for name, (dependency, _) in answers.items()}
        duration = {name: took_s for name, (_, took_s) in answers.items()}
        self._readings.set_each(names.DEPENDENCY_UP, ATTRIBUTE, up)
        self._readings.set_each(names.DEPENDENCY_DURATION, ATTRIBUTE, duration)
        pool = self._engine.pool
        assert isinstance(pool, QueuePool)
        allowed = limits.DATABASE_POOL_SIZE + limits.DATABASE_POOL_OVERFLOW
        connections = {"used": float(pool.checkedout()), "allowed": float(allowed)}
        self._readings.set_each(names.DATABASE_CONNECTIONS, "quorate.state", connections)

    @staticmethod
    async def _timed(probe: Probe) -> tuple[Dependency, float]:
        began = time.perf_counter()
        found = await probe()
        return found, time.perf_counter() - began
