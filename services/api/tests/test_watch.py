"""Operators' metrics: the fleet, groups, SLAs, the usage stream, money, and absent dependencies."""

import uuid
from collections.abc import Callable
from datetime import UTC, datetime

import psycopg
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from redis.asyncio import Redis
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api.coordinator.schemas import Amounts, FleetView
from quorate_api.database import engine as database
from quorate_api.health import service as health
from quorate_api.health.dependencies import Dependencies
from quorate_api.http.services import Services
from quorate_api.observability.metric_names import ALL
from quorate_api.observability.readings import Readings
from quorate_api.worker.events import Follower
from quorate_api.worker.ingest import STREAM, Ingest
from quorate_api.worker.watch import Watch, promised
from support.coordinator import FakeCoordinator
from support.customer import Customer

Series = Callable[[str], dict[str, float]]


@pytest.fixture
def reader() -> InMemoryMetricReader:
    return InMemoryMetricReader()


@pytest.fixture
def readings(reader: InMemoryMetricReader) -> Readings:
    return Readings(MeterProvider(metric_readers=[reader]).get_meter("test"))


@pytest.fixture
def series(reader: InMemoryMetricReader) -> Series:
    """Values of a metric as exported now, by the value of its one attribute."""

    def read(name: str) -> dict[str, float]:
        data = reader.get_metrics_data()
        found = {}
        for resource in data.resource_metrics if data else []:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    if metric.name == name:
                        for point in metric.data.data_points:
                            found[next(iter((point.attributes or {}).values()), "")] = point.value
        return found

    return read


@pytest.fixture
async def watch(readings: Readings, worker_engine: AsyncEngine, services: Services, bus: Redis) -> Watch:
    ingest = Ingest(bus, worker_engine, "w1")
    await ingest.prepare()
    return Watch(readings, worker_engine, services.coordinator, ingest)


async def test_the_fleet_by_its_gravest_state(watch: Watch, coordinator: FakeCoordinator, series: Series) -> None:
    coordinator.servers[2].update(alive=False, draining=True)
    coordinator.servers[3]["slow"] = "its disk"
    await watch.run()
    assert series("quorate.fleet.servers") == {"alive": 1, "slow": 1, "draining": 0, "storage_fault": 0, "failed": 1}
    shares = series("quorate.fleet.promised")
    assert set(shares) == {"cpu", "network", "storage_io", "memory", "disk"}
    assert all(0 <= share <= 1 for share in shares.values())


async def test_a_server_that_was_drained_and_has_stopped_has_not_failed(
    watch: Watch, coordinator: FakeCoordinator, series: Series
) -> None:
    at = datetime.now(UTC).isoformat()
    drain = {"state": "draining", "since": at, "drained_at": None, "moving": 0, "waiting": 0, "message": "Dropping."}
    coordinator.servers[2].update(alive=False, draining=True, drain=drain)
    await watch.run()
    assert series("quorate.fleet.servers")["failed"] == 1, "it died on the way"
    drain.update(state="drained", drained_at=at)
    await watch.run()
    assert series("quorate.fleet.servers") == {"alive": 2, "slow": 0, "draining": 0, "storage_fault": 0, "failed": 0}
    coordinator.servers[2]["alive"] = True
    await watch.run()
    assert series("quorate.fleet.servers")["draining"] == 1, "its machine still runs"


async def test_what_cannot_be_read_has_no_series(watch: Watch, coordinator: FakeCoordinator, series: Series) -> None:
    await watch.run()
    assert series("quorate.fleet.servers")
    coordinator.down = True
    await watch.run()
    assert series("quorate.fleet.servers") == {}
    assert series("quorate.fleet.promised") == {}
    assert series("quorate.usage.backlog") == {"": 0}, "what the coordinator has nothing to do with is still there"
    coordinator.down = False
    await watch.run()
    assert series("quorate.fleet.servers")


async def test_groups_by_status(
    watch: Watch, worker_engine: AsyncEngine, services: Services, coordinator: FakeCoordinator, alice: Customer,
    series: Series,
) -> None:  # fmt: skip
    first, _second = await alice.create_group(), await alice.create_group(name="second")
    coordinator.fail_over(uuid.UUID(first["id"]))
    await Follower(worker_engine, services.coordinator).step(0)
    await watch.run()
    assert series("quorate.fleet.groups") == {
        "provisioning": 0, "active": 1, "degraded": 1, "paused": 0, "lost": 0, "deleting": 0,
    }  # fmt: skip


async def test_minutes_without_telemetry_are_bad(
    watch: Watch, alice: Customer, owner: psycopg.Connection, series: Series
) -> None:
    await alice.create_group()
    now = datetime.now(UTC)
    await watch.judge(now)
    assert series("quorate.sla.groups.bad") == {"availability": 0, "throughput": 0, "latency": 0}, "no minute is over"
    owner.execute("UPDATE groups SET active_at = now() - interval '10 minutes'")
    await watch.judge(now)
    assert series("quorate.sla.groups.bad") == {"availability": 1, "throughput": 1, "latency": 1}


async def test_the_backlog_is_what_is_not_acknowledged(watch: Watch, bus: Redis, series: Series) -> None:
    for _ in range(3):
        await bus.xadd(STREAM, {b"d": b"{}"})
    await watch.run()
    assert series("quorate.usage.backlog") == {"": 3}
    await bus.xreadgroup("quorate-worker", "another", {STREAM: ">"}, count=2)
    await watch.run()
    assert series("quorate.usage.backlog") == {"": 3}, "read and not acknowledged counts too"
    await watch.ingest.step(1)
    await watch.run()
    assert series("quorate.usage.backlog") == {"": 2}


async def test_nothing_is_billed_yet(watch: Watch, series: Series) -> None:
    await watch.run()
    assert series("quorate.billing.amount") == {"invoice": 0, "credit_note": 0}


async def test_dependencies(
    readings: Readings, services: Services, worker_engine: AsyncEngine, bus: Redis, coordinator: FakeCoordinator,
    series: Series,
) -> None:  # fmt: skip
    probes = {
        "postgresql": lambda: health.postgresql(worker_engine, database.WORKER_ROLE),
        "redis": lambda: health.redis_server(bus),
        "coordinator": lambda: health.fleet(services.coordinator),
    }
    dependencies = Dependencies(readings, worker_engine, probes)
    coordinator.down = True
    await dependencies.run()
    assert series("quorate.dependency.up") == {"postgresql": 1, "redis": 1, "coordinator": 0}
    assert all(0 < took_s < 2.5 for took_s in series("quorate.dependency.duration").values())
    async with worker_engine.connect():
        await dependencies.run()
        assert series("quorate.database.connections")["used"] == 1


def test_a_fleet_that_may_promise_nothing_is_full() -> None:
    none = Amounts(cpu=0, network_bytes_per_s=10, storage_io_per_s=8)
    free = Amounts(cpu=0, network_bytes_per_s=10, storage_io_per_s=2)
    fleet = FleetView(
        nominal=none, promisable=none, allocated=none, free=free,
        servers_alive=0, safety_factor=0.7, profile_version="test", profile_provisional=True,
    )  # fmt: skip
    assert promised(fleet) == {"cpu": 1, "network": 0, "storage_io": 0.75}


def test_memory_and_disk_have_a_share_where_all_servers_say_how_much_they_have() -> None:
    rates = {"cpu": 1, "network_bytes_per_s": 1, "storage_io_per_s": 1}
    all_of_it, free = Amounts(**rates, memory_bytes=8, disk_bytes=0), Amounts(**rates, memory_bytes=2, disk_bytes=0)
    fleet = FleetView(
        nominal=all_of_it, promisable=all_of_it, allocated=all_of_it, free=free,
        servers_alive=1, safety_factor=0.7, profile_version="test", profile_provisional=True,
    )  # fmt: skip
    assert (promised(fleet)["memory"], promised(fleet)["disk"]) == (0.75, 1)


def test_every_metric_says_who_exports_it() -> None:
    assert all(metric.processes and set(metric.processes) <= {"api", "worker"} for metric in ALL)
