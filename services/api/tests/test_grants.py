"""Burst capacity as operators see it: servers' reports on a real Redis, folded and paged, or unknown."""

import json
import time
import uuid
from typing import Any

import httpx2
import pytest
from redis.asyncio import Redis

from quorate_api import limits
from quorate_api.http.services import Services
from quorate_api.operator.grants import STREAM, Entry, current
from support.customer import problem

GROUPS = sorted((uuid.uuid4() for _ in range(5)), key=lambda group: group.bytes)
NOW_MS = int(time.time() * 1_000)


def report(group: uuid.UUID, per_s: int, **more: Any) -> dict[str, Any]:
    return {"at_ms": NOW_MS, "group": str(group), "epoch": 3, "per_s": per_s, "since_ms": NOW_MS - 60_000} | more


async def publish(bus: Redis, server_id: int = 1, entry_id: str = "*", **lists: list[dict[str, Any]]) -> None:
    await bus.xadd(STREAM, {"d": json.dumps({"v": 1, "server_id": server_id, "dropped": 0} | lists)}, id=entry_id)


async def listed(operator: httpx2.AsyncClient, **params: Any) -> dict[str, Any]:
    answer = await operator.get("/v1/operator/lending", params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_a_grant_has_its_rate_its_start_and_its_bound(operator: httpx2.AsyncClient, bus: Redis) -> None:
    assert await listed(operator) == {"items": [], "next_cursor": None, "state": "complete"}
    bounded = {"bounded_by": "storage_io", "bounded_by_server": 3}
    await publish(bus, changes=[report(GROUPS[0], 1_200, before_per_s=0, reason="agreed", **bounded)])
    (item,) = (await listed(operator))["items"]
    assert item["group_id"] == str(GROUPS[0])
    assert (item["server_id"], item["server_name"], item["epoch"]) == (1, "s1", 3)
    assert (item["borrowed_per_s"], item["lent_per_s"]) == (1_200, 0)
    assert (item["bounded_by"], item["bounded_by_server_id"]) == ("storage_io", 3)
    assert item["borrowed_since"] < item["observed_at"]
    # It has all that it wants, so no resource bounds it. Others may use a part of its reservation meanwhile.
    await publish(bus, now=[report(GROUPS[0], 900, lent_per_s=50)])
    (item,) = (await listed(operator))["items"]
    assert (item["borrowed_per_s"], item["bounded_by"], item["lent_per_s"]) == (900, None, 50)
    await publish(bus, changes=[report(GROUPS[0], 0, reason="recalled", since_ms=None)])
    (item,) = (await listed(operator))["items"]
    assert (item["borrowed_per_s"], item["borrowed_since"], item["lent_per_s"]) == (0, None, 50)
    await publish(bus, now=[report(GROUPS[0], 0, lent_per_s=0)])
    assert (await listed(operator))["items"] == []


def test_an_owner_that_uses_its_whole_reservation_is_gone_with_the_next_report() -> None:
    def entry(*now: dict[str, Any], server_id: int = 1) -> Entry:
        return Entry.model_validate({"v": 1, "server_id": server_id, "now": now})

    unused, other = report(GROUPS[0], 0, since_ms=None, lent_per_s=70), report(GROUPS[1], 5, lent_per_s=0)
    ended = unused | {"lent_per_s": 0}
    assert [one.lent_per_s for one in current([entry(unused), entry(other)], {})] == [70, 0]
    (left,) = current([entry(unused), entry(other, ended)], {})
    assert left.group_id == GROUPS[1]
    # A former head's report never ends its successor's grant, in either order of arrival.
    newer = entry(unused | {"epoch": 4, "lent_per_s": 30}, server_id=2)
    for entries in ([entry(unused), entry(ended), newer], [entry(unused), newer, entry(ended)]):
        (left,) = current(entries, {})
        assert (left.server_id, left.lent_per_s) == (2, 30)


async def test_the_newest_head_counts_and_an_old_report_does_not(operator: httpx2.AsyncClient, bus: Redis) -> None:
    old_ms = NOW_MS - (limits.GRANTS_AGE_S_MAX + 5) * 1_000
    await publish(bus, 2, f"{old_ms}-0", now=[report(GROUPS[1], 10)])
    assert (await listed(operator))["items"] == []
    await publish(bus, 2, now=[report(GROUPS[1], 10, epoch=4, lent_per_s=7)])
    await publish(bus, 1, changes=[report(GROUPS[1], 99, epoch=3)])
    (item,) = (await listed(operator))["items"]
    assert (item["server_id"], item["borrowed_per_s"], item["epoch"], item["lent_per_s"]) == (2, 10, 4, 7)
    await publish(bus, 9, changes=[report(GROUPS[1], 5, epoch=5)])
    (item,) = (await listed(operator))["items"]
    assert (item["server_id"], item["server_name"], item["lent_per_s"]) == (9, None, 0)


async def test_pages_and_one_server(operator: httpx2.AsyncClient, bus: Redis) -> None:
    for number, group in enumerate(reversed(GROUPS)):
        await publish(bus, 1 + number % 2, changes=[report(group, 5)])
    seen, cursor = [], None
    while True:
        page = await listed(operator, limit=2, **({"cursor": cursor} if cursor else {}))
        seen += [item["group_id"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == [str(group) for group in GROUPS]
    of_two = (await listed(operator, server_id=2))["items"]
    assert {item["server_id"] for item in of_two} == {2}
    assert len(of_two) == 2
    problem(await operator.get("/v1/operator/lending", params={"cursor": "AAAA"}), 400, "cursor_invalid")
    problem(await operator.get("/v1/operator/lending", params={"limit": 0}), 422, "validation_failed")
    problem(await operator.get("/v1/operator/lending", params={"server_id": -1}), 422, "validation_failed")


async def test_what_does_not_follow_the_contract_is_left_out(operator: httpx2.AsyncClient, bus: Redis) -> None:
    for bad in ("{", '{"v":2,"server_id":1}', json.dumps({"v": 1, "server_id": 1, "now": [report(GROUPS[0], -1)]})):
        await bus.xadd(STREAM, {"d": bad})
    await bus.xadd(STREAM, {"other": "field"})
    # A report of an earlier version has neither start nor bound.
    before = {key: value for key, value in report(GROUPS[0], 5).items() if key != "since_ms"}
    await publish(bus, changes=[before | {"reason": "agreed", "before_per_s": 0}])
    (item,) = (await listed(operator))["items"]
    assert (item["borrowed_per_s"], item["borrowed_since"], item["bounded_by"]) == (5, None, None)


async def test_it_says_when_it_does_not_know(
    operator: httpx2.AsyncClient, bus: Redis, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "GRANTS_ENTRIES_MAX", 2)
    for group in GROUPS[:3]:
        await publish(bus, changes=[report(group, 5)])
    page = await listed(operator)
    assert (page["state"], len(page["items"])) == ("partial", 2)
    async with Redis.from_url("redis://127.0.0.1:1/0", socket_timeout=1) as nobody:
        for gone in (nobody, None):
            monkeypatch.setattr(services, "redis", gone)
            assert await listed(operator) == {"items": [], "next_cursor": None, "state": "unknown"}
