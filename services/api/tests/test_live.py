"""Live charts: samples through one reader, placement at changes, and the absence of Redis."""

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from redis.asyncio import Redis

from quorate_api import limits
from quorate_api.access.permissions import Allowed
from quorate_api.database.work import Work
from quorate_api.embedded import redis as embedded_redis
from quorate_api.http.principal import Credential, Principal
from quorate_api.http.services import Services
from quorate_api.live import service
from quorate_api.telemetry.hub import STREAM, Hub
from quorate_api.telemetry.viewers import Viewers
from quorate_api.worker.events import Follower
from support.coordinator import FakeCoordinator
from support.customer import Customer, problem


def sample(group_id: str, number: int, **more: Any) -> dict[str, str]:
    group = {
        "group": group_id, "epoch": 1, "role": "head", "committed_entries": number, "append_per_s": 1.5,
        "offered_per_s": 2, "throttled_per_s": 0, "p50_us": 200, "p99_us": 900,
    }  # fmt: skip
    return {"d": json.dumps({"v": 1, "server_id": 1, "at_ms": 1_000 + number, "groups": [group | more]})}


async def events_of(stream: AsyncIterator[bytes]) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    async for chunk in stream:
        if chunk.startswith(b"event: "):
            name, data = chunk.decode().strip().split("\n")
            yield name.removeprefix("event: "), json.loads(data.removeprefix("data: "))


def streamed(services: Services, customer: Customer, group_id: str) -> AsyncIterator[bytes]:
    """The stream of a caller who is let in at each check."""
    principal = principal_of(customer)

    async def authenticate(work: Work) -> Principal:
        await work.enter(principal.organization_id)
        return principal

    return service.stream(services, principal, uuid.UUID(group_id), authenticate)


def principal_of(customer: Customer) -> Principal:
    organization_id, credential = uuid.UUID(customer.organization_id), Credential(uuid.uuid4(), None, None)
    return Principal(uuid.uuid4(), "user", organization_id, Allowed.of_role("owner"), credential, "active")


def events_in(text: str) -> list[tuple[str, dict[str, Any]]]:
    parts = [part.split("\n") for part in text.split("\n\n") if part.startswith("event: ")]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in parts]


async def keep_sending(bus: Redis, *group_ids: str) -> None:
    number = 0
    while True:
        number += 1
        for group_id in group_ids:
            await bus.xadd(STREAM, sample(group_id, number))
        await asyncio.sleep(0.02)


async def test_samples_and_placement(
    alice: Customer, services: Services, bus: Redis, coordinator: FakeCoordinator, worker_engine: Any
) -> None:
    group, other = await alice.create_group("a"), await alice.create_group("b")
    sender = asyncio.create_task(keep_sending(bus, group["id"], other["id"]))
    try:
        async with asyncio.timeout(20):
            events = events_of(streamed(services, alice, group["id"]))
            name, placement = await anext(events)
            assert name == "placement"
            assert [replica["role"] for replica in placement["replicas"]] == ["head", "follower", "tail"]
            name, first = await anext(events)
            assert name == "sample"
            assert set(first) == {"at_ms", "append_per_s", "offered_per_s", "throttled_per_s", "p50_us", "p99_us",
                                  "committed_entries", "epoch"}  # fmt: skip
            name, second = await anext(events)
            assert second["committed_entries"] == first["committed_entries"] + 1, "only this group's, in order"
            coordinator.fail_over(uuid.UUID(group["id"]))
            await Follower(worker_engine, services.coordinator).step(0)
            async for name, data in events:
                if name == "placement":
                    assert data["epoch"] == 2
                    assert data["status"] == "degraded"
                    break
            await events.aclose()  # type: ignore[attr-defined]
    finally:
        sender.cancel()


async def test_a_chart_begins_with_the_last_two_minutes(alice: Customer, services: Services, bus: Redis) -> None:
    group, other = await alice.create_group("a"), await alice.create_group("b")
    now_ms = int(time.time() * 1_000)
    for age_s in (300, 90, 30, 1):
        for group_id in (other["id"], group["id"]):
            entry = json.loads(sample(group_id, age_s)["d"]) | {"at_ms": now_ms - age_s * 1_000}
            await bus.xadd(STREAM, {"d": json.dumps(entry)})
    await bus.xadd(STREAM, {"d": f"nonsense of {group['id']}"})
    stream = service.stream(services, principal_of(alice), uuid.UUID(group["id"]), never_asked, 120)
    async with asyncio.timeout(20):
        events = events_of(stream)
        found = [await anext(events) for _ in range(3)]
        assert [data["committed_entries"] for _, data in found] == [90, 30, 1], "oldest first, of this group alone"
        assert (await anext(events))[0] == "placement"
        await events.aclose()  # type: ignore[attr-defined]
    assert await Hub(None).recent([group["id"]], 0) == []


async def never_asked(work: Work) -> Principal:
    raise AssertionError("the stream is not that long")


async def test_over_http(alice: Customer, bus: Redis, services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LIVE_CONNECTION_S_MAX", 1)
    group = await alice.create_group()
    sender = asyncio.create_task(keep_sending(bus, group["id"]))
    answer = await alice.request("GET", f"/v1/groups/{group['id']}/live")
    sender.cancel()
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert "event: placement" in answer.text
    assert answer.text.count("event: sample") > 3
    assert services.engine.pool.checkedout() == 0, "a stream holds no connection"  # type: ignore[attr-defined]


async def test_a_slow_subscriber_loses_the_oldest(bus: Redis) -> None:
    hub = Hub(bus)
    async with hub.subscribe(["g"]) as queue, hub.subscribe("g") as fast:
        await asyncio.sleep(0.1)
        received = []
        for number in range(limits.LIVE_QUEUE_EVENTS_MAX + 10):
            await bus.xadd(STREAM, sample("g", number))
            received.append((await asyncio.wait_for(fast.get(), 5))[1]["committed_entries"])
        assert received == list(range(limits.LIVE_QUEUE_EVENTS_MAX + 10))
        assert queue.qsize() == limits.LIVE_QUEUE_EVENTS_MAX
        assert queue.get_nowait()[1]["committed_entries"] == 10
    await hub.aclose()


async def test_the_reader_stops_with_the_last_subscriber(bus: Redis) -> None:
    hub = Hub(bus)
    for _ in range(2):
        async with hub.subscribe(["g"]):
            await asyncio.sleep(0.05)
            reader = hub._reader
            assert reader is not None
            assert not reader.done()
        assert hub._reader is None
        await asyncio.wait({reader}, timeout=5)
        assert reader.done()
    await hub.aclose()


async def test_viewers_are_bounded_before_the_answer_begins(
    alice: Customer, bob: Customer, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LIVE_SUBSCRIBERS_PER_ORGANIZATION_MAX", 2)
    monkeypatch.setattr(limits, "LIVE_SUBSCRIBERS_MAX", 3)
    of_alice, of_bob = (await alice.create_group())["id"], (await bob.create_group())["id"]

    async def opened(customer: Customer, group_id: str) -> AsyncIterator[bytes]:
        stream = streamed(services, customer, group_id)
        assert await anext(stream) == b"retry: 1000\n\n"
        return stream

    streams = [await opened(alice, of_alice) for _ in range(2)]
    path = f"/v1/groups/{of_alice}/live"
    answer = await alice.request("GET", path)
    assert (answer.status_code, answer.json()["code"]) == (429, "rate_limited")
    assert "close one" in answer.json()["detail"]
    streams.append(await opened(bob, of_bob))
    answer = await bob.request("GET", f"/v1/groups/{of_bob}/live")
    assert (answer.status_code, answer.json()["code"]) == (503, "overloaded")
    for stream in streams:
        await stream.aclose()  # type: ignore[attr-defined]
    monkeypatch.setattr(limits, "LIVE_CONNECTION_S_MAX", 0.5)
    assert (await alice.request("GET", path)).status_code == 200, "places are given back"


async def test_a_caller_who_loses_its_right_sees_no_more(
    alice: Customer, services: Services, owner: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LIVE_CALLER_CHECK_S", 0.2)
    group = await alice.create_group()
    answering = asyncio.create_task(alice.request("GET", f"/v1/groups/{group['id']}/live"))
    async with asyncio.timeout(20):
        while not services.viewers._count:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.5)
        assert not answering.done(), "each check lets it in"
        owner.execute("DELETE FROM sessions")
        answer = await answering
    assert events_in(answer.text)[-1] == ("end", {"code": "session_expired"})


async def test_one_query_for_an_organization_however_many_watch(
    alice: Customer, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = [await alice.create_group(name) for name in ("a", "b")]
    looks = []
    look = Viewers._look

    async def counted(self: Viewers, organization_id: uuid.UUID) -> None:
        looks.append(organization_id)
        await look(self, organization_id)

    monkeypatch.setattr(Viewers, "_look", counted)
    monkeypatch.setattr(limits, "LIVE_PLACEMENT_POLL_S", 0.2)
    streams = [streamed(services, alice, group["id"]) for group in groups for _ in range(5)]
    async with asyncio.timeout(20):
        for stream in streams:
            name, placement = await anext(events_of(stream))
            assert (name, len(placement["replicas"])) == ("placement", 3)
        looks.clear()
        begun_s = time.monotonic()
        while len(looks) < 3:
            await asyncio.sleep(0.05)
        looked_s = time.monotonic() - begun_s
    assert len(looks) <= 2 + looked_s / 0.2, "five a second, for ten viewers of two groups"
    for stream in streams:
        await stream.aclose()  # type: ignore[attr-defined]
    await asyncio.sleep(0.5)
    looks.clear()
    await asyncio.sleep(0.5)
    assert looks == [], "nobody watches"


async def test_a_deletion_is_the_last_event(
    alice: Customer, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LIVE_PLACEMENT_POLL_S", 0.1)
    group = await alice.create_group()
    events = events_of(streamed(services, alice, group["id"]))
    async with asyncio.timeout(20):
        assert (await anext(events))[1]["status"] != "deleted"
        await alice.request("DELETE", f"/v1/groups/{group['id']}")
        names = [(name, data["status"]) async for name, data in events]
    assert names[-1] == ("placement", "deleted")


async def test_redis_away_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RETRY_DELAY_S_MAX", 0.1)
    url = embedded_redis.start(tmp_path / "redis")
    client: Redis = Redis.from_url(url, socket_timeout=3)
    hub = Hub(client)
    try:
        async with asyncio.timeout(20), hub.subscribe(["g"]) as queue:
            await asyncio.sleep(0.2)
            embedded_redis.stop(tmp_path / "redis")
            assert await queue.get() == ("source", {"available": False})
            async with hub.subscribe(["g"]) as late:
                assert await late.get() == ("source", {"available": False})
            embedded_redis.start(tmp_path / "redis")
            assert await queue.get() == ("source", {"available": True})
            sender = asyncio.create_task(keep_sending(client, "g"))
            assert (await queue.get())[0] == "sample"
            sender.cancel()
            await asyncio.gather(sender, return_exceptions=True)
    finally:
        await hub.aclose()
        await client.aclose()
        embedded_redis.stop(tmp_path / "redis")


async def test_entries_that_do_not_follow_the_contract(bus: Redis) -> None:
    hub = Hub(bus)
    async with asyncio.timeout(10), hub.subscribe(["g"]) as queue:
        await asyncio.sleep(0.1)
        for fields in (
            {"d": "{"},
            {"x": "1"},
            {"d": "[]"},
            {"d": '{"groups":[1],"at_ms":1}'},
            sample("g", 1, role="tail"),
        ):
            await bus.xadd(STREAM, fields)
        await bus.xadd(STREAM, sample("g", 7))
        assert (await queue.get())[1]["committed_entries"] == 7
    await hub.aclose()


async def test_readiness_names_what_is_missing(
    api: httpx2.AsyncClient,
    operator: httpx2.AsyncClient,
    services: Services,
    coordinator: FakeCoordinator,
    alice: Customer,
) -> None:
    ready = (await operator.get("/v1/ready")).json()
    assert ready["status"] == "ok"
    assert {each["name"] for each in ready["dependencies"]} == {"postgresql", "redis", "coordinator"}
    services.redis = None
    coordinator.down = True
    stranger = (await api.get("/v1/ready")).json()
    assert stranger == {"status": "degraded", "dependencies": None}, "details are not for strangers"
    problem(await api.get("/v1/ready", headers={"Authorization": "Bearer qo_x"}), 401, "credentials_invalid")
    answer = await operator.get("/v1/ready")
    assert answer.status_code == 200
    assert answer.json()["status"] == "degraded"
    missing = {each["name"]: each["detail"] for each in answer.json()["dependencies"] if each["state"] == "missing"}
    assert set(missing) == {"redis", "coordinator"}
    assert (await alice.get("/v1/projects"))["items"], "the rest works"
