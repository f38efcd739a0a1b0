"""(i) The public status: each region's components, looked at twice a minute, and each minute counted once.

Looks while PostgreSQL is away are kept in memory and counted afterwards: an outage of the database is one of
the things to tell.
"""

import contextlib
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime

import httpx2
import structlog
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.coordinator.client import Coordinator, CoordinatorUnavailable
from quorate_api.coordinator.schemas import ServerView
from quorate_api.status.repository import Looked, SampleRepository
from quorate_api.status.rules import Component, Sample, usage_is_fresh
from quorate_api.telemetry.windows import DAY_S, WINDOW_S
from quorate_api.worker.ingest import Ingest
from quorate_api.worker.repository import WorkerRepository

log = structlog.get_logger(__name__)

Groups = dict[str, tuple[int, int]]  # by region: all, and those that accept appends


@dataclass(frozen=True, slots=True)
class Around:
    """Findings of one look. `servers` None: the coordinator does not answer."""

    now: datetime
    servers: list[ServerView] | None
    api_reached: bool
    usage_until: datetime | None

    def admits(self, region: str) -> bool:
        return any(_takes_groups(server) for server in self.servers or () if server.region == region)


@dataclass(slots=True)
class StatusWatch:
    """`api` is a client of the API's public address, with a deadline."""

    engine: AsyncEngine
    coordinator: Coordinator
    ingest: Ingest
    api: httpx2.AsyncClient
    _groups: Groups = field(default_factory=dict)
    _usage_until: datetime | None = None
    _unstored: dict[tuple[str, Component, int], Looked] = field(default_factory=dict)

    async def run(self, now: datetime | None = None) -> None:
        """Look once, and store it. An error of PostgreSQL reaches the caller; what was seen is stored later."""
        around = await self._look(now or datetime.now(UTC))
        try:
            async with self.engine.begin() as connection:
                found = await WorkerRepository(connection).groups_by_region()
                regions = SampleRepository(connection)
                known = set(found) | _regions(around.servers, await regions.regions())
                self._groups = {region: found.get(region, (0, 0)) for region in known}
                self._note(around)
                await regions.count(self._unstored.values())
                await regions.keep([_sample(around, region, counts) for region, counts in self._groups.items()])
                await regions.forget_regions(known)
                await regions.forget_hours(int(around.now.timestamp()) // DAY_S * DAY_S - limits.STATUS_DAYS * DAY_S)
        except (SQLAlchemyError, OSError):
            self._note(around)
            raise
        self._unstored.clear()

    async def _look(self, now: datetime) -> Around:
        try:
            servers = await self.coordinator.servers()
        except CoordinatorUnavailable:
            servers = None
        with contextlib.suppress(RedisError, OSError, TimeoutError):  # the known time grows old, and tells so
            self._usage_until = await self.ingest.stored_until() or self._usage_until
        return Around(now, servers, await self._reached(), self._usage_until)

    async def _reached(self) -> bool:
        try:
            return (await self.api.get("/v1/ready")).status_code == 200
        except httpx2.HTTPError:
            return False

    def _note(self, around: Around) -> None:
        """Note the minute for each component of each known region. The first look of a minute counts."""
        minute_s = int(around.now.timestamp()) // WINDOW_S * WINDOW_S
        for region, (groups, _) in self._groups.items():
            seen: dict[Component, bool] = {"api": around.api_reached, "admission": around.admits(region)}
            if groups and around.usage_until is not None:
                seen["usage"] = usage_is_fresh((around.now - around.usage_until).total_seconds())
            for component, good in seen.items():
                if len(self._unstored) < limits.STATUS_UNSTORED_MINUTES_MAX * len(seen) * len(self._groups):
                    looked = Looked(minute_s, region, component, good)
                    self._unstored.setdefault((region, component, minute_s), looked)


def client(origin: str, transport: httpx2.AsyncBaseTransport | None = None) -> httpx2.AsyncClient:
    """A client of the API at its public address. Close it with `aclose`."""
    return httpx2.AsyncClient(base_url=origin, timeout=limits.STATUS_PROBE_S, trust_env=False, transport=transport)


def _regions(servers: Collection[ServerView] | None, known: set[str]) -> set[str]:
    """Regions with servers; while nobody tells, those that are known."""
    return known if servers is None else {server.region for server in servers}


def _takes_groups(server: ServerView) -> bool:
    return server.alive and server.takes_replicas and not server.auxiliary and not server.draining


def _sample(around: Around, region: str, counts: tuple[int, int]) -> Sample:
    groups, accepting = counts
    return Sample(region, around.now, groups, accepting, around.admits(region), around.api_reached, around.usage_until)
