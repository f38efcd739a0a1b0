"""(h) Metrics for operators: the fleet, groups, SLAs, the usage stream and money, read periodically.

It runs only where metrics are exported, and changes nothing. A part that cannot be read does not affect the others.
"""

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import get_args

from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.coordinator.client import Coordinator, CoordinatorUnavailable
from quorate_api.coordinator.schemas import FleetView, GroupStatus, ServerView
from quorate_api.database.scope import EveryOrganization
from quorate_api.heads.repository import HeadRepository
from quorate_api.observability import metric_names as names
from quorate_api.observability.metric_names import Metric
from quorate_api.observability.readings import Readings
from quorate_api.outside.repository import OutsideRepository
from quorate_api.sla import service as sla
from quorate_api.sla.targets import MEASURED
from quorate_api.telemetry.windows import WINDOW_S
from quorate_api.worker.ingest import Ingest
from quorate_api.worker.repository import WorkerRepository

STATES = ("alive", "slow", "draining", "storage_fault", "failed")  # from mild to severe
RESOURCES = {
    "cpu": "cpu",
    "network": "network_bytes_per_s",
    "storage_io": "storage_io_per_s",
    "memory": "memory_bytes",
    "disk": "disk_bytes",
}
MICROS = 1_000_000
AWAY = (RedisError, SQLAlchemyError, CoordinatorUnavailable, OSError, TimeoutError)


@dataclass(slots=True)
class Watch:
    readings: Readings
    engine: AsyncEngine
    coordinator: Coordinator
    ingest: Ingest
    _slow_due: datetime = field(default=datetime.min.replace(tzinfo=UTC))

    def __post_init__(self) -> None:
        own = [metric for metric in names.ALL if metric.processes == ("worker",)]
        for metric in own:
            if metric.kind == "gauge" or metric is names.BILLED:
                self.readings.add(metric)

    async def run(self) -> None:
        """Read every metric once."""
        now = datetime.now(UTC)
        await self._read(self._fleet, names.FLEET_SERVERS, names.FLEET_PROMISED)
        await self._read(self._groups, names.FLEET_GROUPS)
        await self._read(self._backlog, names.USAGE_BACKLOG)
        if now >= self._slow_due:
            self._slow_due = now + timedelta(seconds=limits.WATCH_SLA_INTERVAL_S)
            await self._read(lambda: self.judge(now), names.SLA_GROUPS_BAD)
            await self._read(self._billed, names.BILLED)

    async def _read(self, part: Callable[[], Awaitable[None]], *metrics: Metric) -> None:
        """Drops the metrics of an absent dependency. Other tasks log the absence and count it as a failure."""
        try:
            await part()
        except AWAY:
            self.readings.drop(*metrics)

    async def _fleet(self) -> None:
        servers, fleet = await self.coordinator.servers(), await self.coordinator.capacity()
        self.readings.set_each(names.FLEET_SERVERS, "quorate.state", by_state(servers))
        self.readings.set_each(names.FLEET_PROMISED, "quorate.resource", promised(fleet))

    async def _groups(self) -> None:
        async with self.engine.connect() as connection:
            found = await WorkerRepository(connection).groups_by_status()
        statuses = {status: float(found.get(status, 0)) for status in get_args(GroupStatus)}
        self.readings.set_each(names.FLEET_GROUPS, "quorate.status", statuses)

    async def _backlog(self) -> None:
        self.readings.set(names.USAGE_BACKLOG, await self.ingest.backlog())

    async def judge(self, now: datetime) -> None:
        """Judge the last minutes by the rules of SLA reports."""
        end_s = sla.settled_s(now)
        start_s = end_s - limits.WATCH_SLA_MINUTES * WINDOW_S
        async with self.engine.connect() as connection:
            groups = await WorkerRepository(connection).running_groups()
            scope = EveryOrganization(connection, "operators see the SLAs of the whole fleet")
            # As much again on both sides, to distinguish a group without traffic from one without a head.
            edge_s = end_s - start_s
            windows = await HeadRepository(scope).of_all(start_s - edge_s, end_s + edge_s)
            outside = await OutsideRepository(connection).unreachable([(start_s, end_s)])
        start, end = datetime.fromtimestamp(start_s, UTC), datetime.fromtimestamp(end_s, UTC)
        bad = dict.fromkeys(MEASURED, 0.0)
        for group in groups:
            report = sla.judged(windows.get(str(group.id), []), outside, group, start, end, now)
            for attainment in report.attainments:
                if attainment.clause.name in MEASURED:
                    bad[attainment.clause.name] += float(attainment.bad_minutes > 0)
        self.readings.set_each(names.SLA_GROUPS_BAD, "quorate.clause", bad)

    async def _billed(self) -> None:
        async with self.engine.connect() as connection:
            found = await WorkerRepository(connection).billed_micros()
        amounts = {kind: abs(found.get(kind, 0)) / MICROS for kind in ("invoice", "credit_note")}
        self.readings.set_each(names.BILLED, "quorate.document", amounts)


def by_state(servers: list[ServerView]) -> dict[str, float]:
    """The number of servers in each state. A server that stopped after a drain needs no action and has no state."""
    found = Counter(_state(server) for server in servers)
    return {state: float(found[state]) for state in STATES}


def _state(server: ServerView) -> str:
    if not server.alive and server.drain is not None and server.drain.state == "drained":
        return "stopped"
    signs = {
        "failed": not server.alive,
        "storage_fault": server.storage_fault is not None,
        "draining": server.draining,
        "slow": server.slow is not None,
    }
    return next((state for state, shows in signs.items() if shows), "alive")


def promised(fleet: FleetView) -> dict[str, float]:
    """The promised share of each resource; 1 where nothing may be promised, because nothing is free then. Memory and
    disk are left out where a server does not say how much it has: nobody knows a share of them."""
    shares = {}
    for resource, attribute in RESOURCES.items():
        promisable, free = getattr(fleet.promisable, attribute), getattr(fleet.free, attribute)
        if promisable is None or free is None:
            continue
        shares[resource] = 1 - free / promisable if promisable > 0 else 1.0
    return shares
