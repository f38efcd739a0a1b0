"""The public status: measured by the worker, told by operators, and read by everybody."""

import random
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from xml.etree import ElementTree

import httpx2
import psycopg
import pytest
from limits import parse
from redis.asyncio import Redis
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.database.scope import EveryOrganization
from quorate_api.http.services import Services
from quorate_api.sla.hours import judge_hours
from quorate_api.telemetry.windows import DAY_S, HOUR_S, WINDOW_S, Window
from quorate_api.worker.ingest import STREAM, Ingest
from quorate_api.worker.retention import settle_days
from quorate_api.worker.rollup import roll_up
from quorate_api.worker.status import StatusWatch, client
from support.coordinator import FakeCoordinator
from support.customer import Customer, new_key, problem
from support.usage import Usage

PATH = "/v1/operator/incidents"
INCIDENT: dict[str, Any] = {
    "title": "Appends are refused", "components": ["data_plane"], "impact": "outage", "message": "We look into it.",
}  # fmt: skip


@pytest.fixture
def now() -> datetime:
    """The tenth second of this minute: half a minute later it is the same one."""
    return datetime.now(UTC).replace(second=10, microsecond=0)


@pytest.fixture(autouse=True)
def patient(services: Services) -> None:
    """A busy machine is no outage of the database."""
    services.status.read_s = 60


@pytest.fixture
async def watch(
    worker_engine: AsyncEngine, services: Services, api: httpx2.AsyncClient, bus: Redis
) -> AsyncIterator[StatusWatch]:
    ingest = Ingest(bus, worker_engine, "w1")
    await ingest.prepare()
    probe = client("http://testserver", api._transport)
    yield StatusWatch(worker_engine, services.coordinator, ingest, probe)
    await probe.aclose()


async def read(api: httpx2.AsyncClient, services: Services) -> dict[str, Any]:
    services.status.forget()
    answer = await api.get("/v1/status")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def states(status: dict[str, Any], region: str = "local") -> dict[str, str]:
    (found,) = (each for each in status["regions"] if each["region"] == region)
    return {each["component"]: each["state"] for each in found["components"]}


async def test_the_status_is_what_the_worker_saw(
    now: datetime,
    api: httpx2.AsyncClient, services: Services, watch: StatusWatch, alice: Customer, bus: Redis,
    coordinator: FakeCoordinator, owner: psycopg.Connection,
) -> None:  # fmt: skip
    empty = await read(api, services)
    assert (empty["state"], empty["regions"], empty["incidents"]) == ("unknown", [], [])

    await watch.run(now)
    assert states(await read(api, services)) == {
        "api": "operational", "admission": "operational", "data_plane": "unknown", "usage": "unknown",
    }  # fmt: skip

    first, second = [(await alice.create_group(name))["id"] for name in ("a", "b")]
    owner.execute("UPDATE groups SET status = 'degraded' WHERE id = %s", [first])
    await bus.xadd(STREAM, {"d": '{"v":1}'})
    await watch.ingest.step(1)
    await watch.run(now + timedelta(seconds=30))
    status = await read(api, services)
    assert set(states(status).values()) == {"operational"}, "a degraded group accepts appends"
    assert status["state"] == "operational"

    owner.execute("UPDATE groups SET status = 'paused' WHERE id = %s", [second])
    coordinator.down = True
    await watch.run(now + timedelta(minutes=1))
    status = await read(api, services)
    assert states(status) == {
        "api": "operational", "admission": "outage", "data_plane": "degraded", "usage": "operational",
    }  # fmt: skip
    assert status["state"] == "outage"
    days = {each["component"]: each["days"] for each in status["regions"][0]["components"]}
    assert len(days["admission"]) == limits.STATUS_DAYS
    counted = owner.execute("SELECT component, minutes, good_minutes FROM status_hours").fetchall()
    if len(counted) == 3:  # the two minutes are of one hour
        assert sorted(counted) == [("admission", 2, 1), ("api", 2, 2), ("usage", 2, 2)]
    text = (await api.get("/v1/status")).text
    leaks = (first, alice.organization_id, alice.project_id, "alice", "Example", "s1", "127.0.0.1")
    assert not [each for each in leaks if each in text]


async def test_regions_come_and_go_with_their_servers_and_groups(
    now: datetime,
    api: httpx2.AsyncClient, services: Services, watch: StatusWatch, coordinator: FakeCoordinator,
    owner: psycopg.Connection, alice: Customer,
) -> None:  # fmt: skip
    coordinator.servers[3]["region"] = "north"
    coordinator.servers[3]["takes_replicas"] = False
    await watch.run(now)
    status = await read(api, services)
    assert [each["region"] for each in status["regions"]] == ["local", "north"]
    assert (states(status)["admission"], states(status, "north")["admission"]) == ("operational", "outage")
    coordinator.servers[3]["region"] = "local"
    await watch.run(now + timedelta(minutes=1))
    assert [each["region"] for each in (await read(api, services))["regions"]] == ["local"]
    await alice.create_group()
    owner.execute("""UPDATE groups SET sla = jsonb_set(sla, '{region}', '"south"')""")
    await watch.run(now + timedelta(minutes=2))
    assert [each["region"] for each in (await read(api, services))["regions"]] == ["local", "south"]


async def test_an_outage_of_the_database_is_counted_afterwards(
    now: datetime,
    watch: StatusWatch,
    worker_engine: AsyncEngine,
    owner: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hour = now.replace(minute=10)
    monkeypatch.setattr(StatusWatch, "_reached", reached)
    await watch.run(hour)
    owner.execute("REVOKE SELECT ON groups FROM quorate_worker")
    monkeypatch.setattr(StatusWatch, "_reached", unreached)
    for second in (60, 70, 120):
        with pytest.raises(SQLAlchemyError):
            await watch.run(hour + timedelta(seconds=second))
    owner.execute("GRANT SELECT ON groups TO quorate_worker")
    monkeypatch.setattr(StatusWatch, "_reached", reached)
    await watch.run(hour + timedelta(seconds=121))
    await watch.run(hour + timedelta(seconds=180))
    counted = owner.execute("SELECT component, minutes, good_minutes FROM status_hours ORDER BY 1").fetchall()
    assert counted == [("admission", 4, 4), ("api", 4, 2)], "the first look of a minute counts"


async def reached(_: StatusWatch) -> bool:
    return True


async def unreached(_: StatusWatch) -> bool:
    return False


async def test_without_a_database_the_status_is_answered(
    now: datetime, api: httpx2.AsyncClient, services: Services, watch: StatusWatch, owner: psycopg.Connection
) -> None:
    for table in ("status_regions", "status_incidents"):
        owner.execute(f"REVOKE SELECT ON {table} FROM quorate_api")  # type: ignore[arg-type]
    nothing = await read(api, services)
    assert (nothing["state"], nothing["regions"]) == ("outage", [])
    problem(await api.get(f"/v1/status/incidents/{uuid.uuid4()}"), 503, "database_unavailable")
    for table in ("status_regions", "status_incidents"):
        owner.execute(f"GRANT SELECT ON {table} TO quorate_api")  # type: ignore[arg-type]
    await watch.run(now)
    assert (await read(api, services))["state"] != "outage"
    owner.execute("REVOKE SELECT ON status_regions FROM quorate_api")
    status = await read(api, services)
    assert status["state"] == "outage"
    assert states(status) == {"api": "outage", "admission": "unknown", "data_plane": "unknown", "usage": "unknown"}


async def test_sums_of_regions_are_those_of_their_groups(
    worker_engine: AsyncEngine, alice: Customer, bob: Customer, owner: psycopg.Connection
) -> None:
    """Windows come late and in any order, hours are judged again, days are settled: the sums stay the same."""
    begin_s = 20_000 * DAY_S
    owners = {(await each.create_group())["id"]: each for each in (alice, bob)}
    usage = Usage(worker_engine, owners)
    owner.execute("UPDATE groups SET active_at = to_timestamp(%s)", [begin_s + 1_000])
    owner.execute("""UPDATE groups SET sla = jsonb_set(sla, '{region}', '"north"') WHERE id = %s""", [list(owners)[1]])
    rng = random.Random(3)
    windows = [
        Window(group, 1, "a", 1, begin_s + minute * WINDOW_S, "head", active_ms=rng.choice((60_000, 60_000, 5_000)),
               committed_entries=minute + 1, first_committed_entries=minute)
        for group in owners for minute in range(0, 130, rng.choice((1, 2)))
    ]  # fmt: skip
    rng.shuffle(windows)
    later_s = begin_s + 30 * HOUR_S
    for start in range(0, len(windows), 70):
        await usage.ingest(windows[start : start + 70])
        await roll_up(worker_engine, later_s)
        assert region_sums(owner, "sla_hours") == region_sums(owner, None)
    settled_s = begin_s + (limits.USAGE_DAYS_KEPT + 1) * DAY_S + HOUR_S
    await settle_days(worker_engine, None, settled_s)
    await roll_up(worker_engine, settled_s)
    expected = region_sums(owner, "sla_hours")
    assert await settle_days(worker_engine, None, settled_s) == 1
    assert region_sums(owner, None) == expected
    assert {region for region, *_ in expected} == {"local", "north"}
    async with worker_engine.begin() as connection:
        hours = [(uuid.UUID(group), begin_s + HOUR_S) for group in owners]
        await judge_hours(EveryOrganization(connection, "a test"), hours, int(settled_s))
    assert region_sums(owner, None) == expected, "a settled day is final"


def region_sums(owner: psycopg.Connection, judged: str | None) -> list[tuple[Any, ...]]:
    if judged is None:
        return owner.execute(
            "SELECT region, hour_s, minutes, available_minutes FROM sla_region_hours ORDER BY 1, 2"
        ).fetchall()
    return owner.execute(
        "SELECT sla->>'region', hour_s, sum(minutes)::bigint, sum(available_minutes)::bigint FROM sla_hours"
        " JOIN groups ON id = group_id GROUP BY 1, 2 ORDER BY 1, 2"
    ).fetchall()


async def test_an_incident_from_its_opening_to_its_end(
    now: datetime, api: httpx2.AsyncClient, services: Services, watch: StatusWatch, operator: httpx2.AsyncClient
) -> None:
    await watch.run(now)
    key = {"Idempotency-Key": new_key()}
    answer = await operator.post(PATH, json=INCIDENT, headers=key)
    assert answer.status_code == 201, answer.text
    opened = answer.json()
    assert (opened["regions"], opened["phase"], opened["resolved_at"]) == (["local"], "investigating", None)
    again = await operator.post(PATH, json=INCIDENT, headers=key)
    assert again.json() == opened
    (shown,) = (await api.get("/v1/status")).json()["incidents"]
    assert shown == opened, "at once, in this process"
    assert (await api.get("/v1/status")).json()["state"] != "outage", "measurements stand beside incidents"

    updates = f"{PATH}/{opened['id']}/updates"
    await operator.post(updates, json={"phase": "identified", "message": "A switch fails.\nWe go round it."})
    answer = await operator.post(updates, json={"phase": "resolved", "impact": "degraded", "message": "It is over."})
    assert answer.status_code == 201, answer.text
    resolved = answer.json()
    assert [each["phase"] for each in resolved["updates"]] == ["resolved", "identified", "investigating"]
    assert [each["impact"] for each in resolved["updates"]] == ["degraded", "outage", "outage"]
    assert resolved["resolved_at"] == resolved["updates"][0]["at"]

    second = (await operator.post(PATH, json=INCIDENT | {"title": "Another <one>"})).json()
    listed = (await api.get("/v1/status")).json()["incidents"]
    assert [each["id"] for each in listed] == [second["id"], opened["id"]], "open ones first"
    assert (await api.get(f"/v1/status/incidents/{opened['id']}")).json() == resolved
    feed = await api.get("/v1/status/feed")
    assert feed.headers["content-type"].startswith("application/atom+xml")
    titles = [each.text for each in ElementTree.fromstring(feed.content).iter("{http://www.w3.org/2005/Atom}title")]
    assert titles == ["Quorate: incidents", "Investigating: Another <one>", "Resolved: Appends are refused"]


async def test_old_incidents_leave_the_list_and_stay_on_record(
    api: httpx2.AsyncClient, services: Services, owner: psycopg.Connection
) -> None:
    ids = [uuid.uuid4() for _ in range(2)]
    for incident_id, phase in zip(ids, ("resolved", "monitoring"), strict=True):
        owner.execute(
            "INSERT INTO status_incidents VALUES (%s, 'Old', '{local}', '{api}', now() - interval '99 days')",
            [incident_id],
        )
        owner.execute(
            "INSERT INTO status_updates VALUES (%s, %s, now() - interval '99 days', %s, 'outage', 'So it was.')",
            [uuid.uuid4(), incident_id, phase],
        )
    assert [each["id"] for each in (await read(api, services))["incidents"]] == [str(ids[1])], "open, however old"
    assert (await api.get(f"/v1/status/incidents/{ids[0]}")).json()["title"] == "Old"
    for statement in (
        "UPDATE status_updates SET message = 'x'", "DELETE FROM status_updates", "TRUNCATE status_updates",
        "UPDATE status_incidents SET title = 'x'", "DELETE FROM status_incidents",
    ):  # fmt: skip
        with pytest.raises(psycopg.errors.RaiseException, match="append-only"):
            owner.execute(statement)  # type: ignore[arg-type]


WRONG: list[dict[str, Any]] = [
    {"title": ""}, {"title": "a\nb"}, {"title": "x" * 101}, {"title": 7}, {"components": []},
    {"components": ["disks"]}, {"components": ["api", "api"]}, {"impact": "none"}, {"message": " "},
    {"message": "\x00"}, {"message": "x" * 4_001}, {"regions": []}, {"regions": ["mars"]},
    {"regions": ["../etc"]}, {"regions": ["local", "local"]}, {"phase": "over"}, {"who": "me"},
]  # fmt: skip


async def test_incidents_that_are_not_valid(operator: httpx2.AsyncClient, owner: psycopg.Connection) -> None:
    owner.execute("INSERT INTO status_regions VALUES ('local', now(), 0, 0, true, true, NULL)")
    for wrong in WRONG:
        body = problem(await operator.post(PATH, json=INCIDENT | wrong), 422, "validation_failed")
        assert body["errors"][0]["field"].startswith(next(iter(wrong)))
    assert owner.execute("SELECT count(*) FROM status_incidents").fetchone() == (0,)


async def test_incidents_are_told_by_operators_alone(
    api: httpx2.AsyncClient, operator: httpx2.AsyncClient, alice: Customer, owner: psycopg.Connection
) -> None:
    problem(await operator.post(PATH, json=INCIDENT), 422, "validation_failed")  # no region was ever seen
    owner.execute("INSERT INTO status_regions VALUES ('local', now(), 0, 0, true, true, NULL)")
    opened = (await operator.post(PATH, json=INCIDENT)).json()
    update = {"phase": "resolved", "message": "No."}
    for path, body in ((PATH, INCIDENT), (f"{PATH}/{opened['id']}/updates", update)):
        problem(await alice.request("POST", path, json=body), 401, "not_authenticated")
        problem(await api.post(path, json=body), 401, "not_authenticated")
    problem(await operator.post(f"{PATH}/{uuid.uuid4()}/updates", json=update), 404, "not_found")
    problem(await operator.post(f"{PATH}/x/updates", json=update), 422, "validation_failed")
    problem(await operator.post(f"{PATH}/{opened['id']}/updates", json={"phase": "resolved"}), 422, "validation_failed")
    problem(await api.get(f"/v1/status/incidents/{uuid.uuid4()}"), 404, "not_found")
    problem(await api.get("/v1/status/incidents/x"), 422, "validation_failed")
    problem(await api.post("/v1/status"), 405, "method_not_allowed")


async def test_the_status_is_read_once_in_some_seconds_and_counted_by_address(
    api: httpx2.AsyncClient, services: Services, owner: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    services.status.kept_s = 3_600
    answer = await api.get("/v1/status")
    assert answer.headers["cache-control"] == "public, max-age=10"
    assert "set-cookie" not in answer.headers
    assert answer.headers["ratelimit-policy"] == '"default";q=120;w=60'
    owner.execute("INSERT INTO status_regions VALUES ('local', now(), 0, 0, true, true, NULL)")
    assert (await api.get("/v1/status")).json()["regions"] == [], "the answer of before"
    services.status.forget()
    assert len((await api.get("/v1/status")).json()["regions"]) == 1
    monkeypatch.setattr("quorate_api.http.rates._STATUS", parse("3/hour"))
    assert [(await api.get(f"/v1/status{each}")).status_code for each in ("", "/feed", "")] == [200] * 3
    refused = await api.get("/v1/status/feed")
    problem(refused, 429, "rate_limited")
    assert 1 <= int(refused.headers["retry-after"]) <= 3_600
