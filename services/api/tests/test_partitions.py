"""Groups with partitions: created, changed and grown as one; settled when an answer was lost; billed by partition."""

import uuid
from datetime import UTC, datetime
from typing import Any

import jwt
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.http.services import Services
from quorate_api.telemetry.together import Together
from quorate_api.worker.reconcile import Reconciler
from support.coordinator import FakeCoordinator
from support.customer import SLA, Customer, problem

RATE_PER_S = 10_001


async def create(customer: Customer, partitions: int = 4, **more: Any) -> dict[str, Any]:
    body = {"name": "orders", **SLA, "rate_per_s": RATE_PER_S, "partitions": partitions, **more}
    answer = await customer.request("POST", f"/v1/projects/{customer.project_id}/groups", json=body)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


async def partitions_of(customer: Customer, group: dict[str, Any]) -> dict[str, Any]:
    return await customer.get(f"/v1/groups/{group['id']}/partitions")


async def test_a_group_with_partitions_is_one_group_to_its_owner(alice: Customer, bob: Customer) -> None:
    group = await create(alice)
    assert (group["partitions"], group["sla"]["rate_per_s"], group["status"]) == (4, RATE_PER_S, "active")
    assert group["partition_of"] is None
    (listed,) = (await alice.get(f"/v1/projects/{alice.project_id}/groups"))["items"]
    assert listed["id"] == group["id"], "partitions are not listed as groups"
    shown = await partitions_of(alice, group)
    assert (shown["key_hash"], shown["layout"], shown["is_changing"]) == (1, 1, False)
    assert [item["rate_per_s"] for item in shown["items"]] == [2_501, 2_500, 2_500, 2_500]
    assert [item["wanted_per_s"] for item in shown["items"]] == [0, 1_000, None, 3_000]
    assert sum(item["hourly_micros"] for item in shown["items"]) == group["price"]["hourly_micros"]
    assert shown["items"][0]["group_id"] == group["id"]
    assert (await bob.request("GET", f"/v1/groups/{group['id']}/partitions")).status_code == 404


async def test_a_group_without_partitions_has_one_which_is_itself(alice: Customer) -> None:
    group = await alice.create_group()
    assert group["partitions"] == 1
    shown = await partitions_of(alice, group)
    assert (shown["layout"], [item["group_id"] for item in shown["items"]]) == (0, [group["id"]])
    assert group["handle"]["partitions"] is None


async def test_the_handle_has_a_token_for_each_partition_with_the_layout(alice: Customer) -> None:
    group = await create(alice)
    handle = await alice.get(f"/v1/groups/{group['id']}/handle")
    partitions = handle["partitions"]
    assert (partitions["key_hash"], partitions["layout"], partitions["changes"]) == (1, 1, [])
    assert [member["partition"] for member in partitions["members"]] == [0, 1, 2, 3]
    for member in partitions["members"]:
        claims = jwt.decode(member["token"], options={"verify_signature": False})
        assert claims["grants"] == [{"group": member["group_id"], "ops": ["append", "read"], "layout": 1}]
        assert len(member["endpoints"]) == SLA["replication_degree"]
        assert member["charges"]["rate_per_s"] > 0
    plain = await alice.create_group(name="plain")
    claims = jwt.decode(plain["handle"]["token"], options={"verify_signature": False})
    assert "layout" not in claims["grants"][0]


async def test_partitions_grow_and_clients_learn_where_the_former_layout_ends(
    alice: Customer, coordinator: FakeCoordinator
) -> None:
    group = await alice.create_group()
    path = f"/v1/groups/{group['id']}"
    rate = group["sla"]["rate_per_s"]
    coordinator.seals = False
    grown = await alice.request("PATCH", path, json={"partitions": 3})
    assert grown.status_code == 200, grown.text
    assert grown.json()["partitions"] == 3
    shown = await partitions_of(alice, group)
    assert (shown["is_changing"], [item["in_use"] for item in shown["items"]]) == (True, [True, False, False])
    assert (await alice.get(f"{path}/handle"))["partitions"] is None
    busy = await alice.request("PATCH", path, json={"partitions": 5})
    problem(busy, 409, "partitions_busy")
    coordinator.partitioned[uuid.UUID(group["id"])] |= {
        "layout": 1,
        "in_use": 3,
        "changes": [{"layout": 1, "from": 1, "to": 3, "ends": [99]}],
    }
    handle = await alice.get(f"{path}/handle")
    change = {"layout": 1, "from_partitions": 1, "to_partitions": 3, "ends": [99]}
    assert (handle["partitions"]["layout"], handle["partitions"]["changes"]) == (1, [change])
    assert len(handle["partitions"]["members"]) == 3
    shown = await alice.get(path)
    assert (shown["partitions"], shown["sla"]["rate_per_s"]) == (3, rate)
    coordinator.seals = True
    again = await alice.request("PATCH", path, json={"partitions": 4, "rate_per_s": 2 * rate})
    assert (again.json()["partitions"], again.json()["sla"]["rate_per_s"]) == (4, 2 * rate)


async def test_an_sla_of_all_partitions_changes_at_once(alice: Customer) -> None:
    group = await create(alice)
    path = f"/v1/groups/{group['id']}"
    changed = (await alice.request("PATCH", path, json={"rate_per_s": 20_000})).json()
    assert (changed["sla"]["rate_per_s"], changed["partitions"]) == (20_000, 4)
    assert changed["price"]["hourly_micros"] > group["price"]["hourly_micros"]
    items = (await partitions_of(alice, group))["items"]
    assert [item["rate_per_s"] for item in items] == [5_000] * 4
    assert sum(item["hourly_micros"] for item in items) == changed["price"]["hourly_micros"]


@pytest.mark.parametrize(
    ("change", "code", "field"),
    [
        ({"partitions": 2}, "validation_failed", "partitions"),
        ({"partitions": 0}, "validation_failed", "partitions"),
        ({"partitions": 257}, "validation_failed", "partitions"),
        ({"rate_per_s": 20_000_000}, "admission_refused", None),
    ],
)
async def test_a_change_that_cannot_be_changes_nothing(
    alice: Customer, change: dict[str, Any], code: str, field: str | None
) -> None:
    group = await create(alice)
    before = await partitions_of(alice, group)
    answer = await alice.request("PATCH", f"/v1/groups/{group['id']}", json=change)
    problem(answer, {"validation_failed": 422, "admission_refused": 409}[code], code)
    if field is not None:
        assert answer.json()["errors"][0]["field"] == field
    assert await partitions_of(alice, group) == before


async def test_a_refusal_after_the_quote_undoes_all(alice: Customer, coordinator: FakeCoordinator) -> None:
    coordinator.refuse_partitions_once = True
    body = {"name": "orders", **SLA, "rate_per_s": RATE_PER_S, "partitions": 4}
    answer = await alice.request("POST", f"/v1/projects/{alice.project_id}/groups", json=body)
    problem(answer, 409, "admission_refused")
    assert (await alice.get(f"/v1/projects/{alice.project_id}/groups"))["items"] == []
    group = await create(alice)  # the names are free
    coordinator.refuse_partitions_once = True
    before = await partitions_of(alice, group)
    grown = await alice.request("PATCH", f"/v1/groups/{group['id']}", json={"partitions": 6})
    problem(grown, 409, "admission_refused")
    assert await partitions_of(alice, group) == before


async def test_a_partition_changes_with_its_group_alone(alice: Customer) -> None:
    group = await create(alice)
    part = (await partitions_of(alice, group))["items"][2]["group_id"]
    shown = await alice.get(f"/v1/groups/{part}")
    assert (shown["partition_of"], shown["partition"], shown["name"]) == (group["id"], 2, "orders/2")
    for method, path, body in (("PATCH", "", {"rate_per_s": 5}), ("DELETE", "", None), ("GET", "/handle", None)):
        answer = await alice.request(method, f"/v1/groups/{part}{path}", json=body)
        problem(answer, 409, "group_is_partition")
    assert (await alice.get(f"/v1/groups/{part}/placement"))["replicas"]


async def test_names_and_quotas_hold_for_partitions(alice: Customer) -> None:
    path = f"/v1/projects/{alice.project_id}/groups"
    body = {**SLA, "rate_per_s": RATE_PER_S, "partitions": 4}
    long = await alice.request("POST", path, json={"name": "x" * limits.NAME_LENGTH_MAX, **body})
    problem(long, 422, "validation_failed")
    await alice.create_group(name="orders/2")
    taken = await alice.request("POST", path, json={"name": "orders", **body})
    problem(taken, 409, "name_taken")
    used = {item["code"]: item["used"] for item in (await alice.get("/v1/quotas"))["items"]}
    assert (used["groups_per_project"], used["partitions_per_project"]) == (1, 0)
    await alice.request("POST", path, json={"name": "events", **body, "partitions": 256})
    await alice.request("POST", path, json={"name": "more", **body, "partitions": 256})
    used = {item["code"]: item["used"] for item in (await alice.get("/v1/quotas"))["items"]}
    assert (used["groups_per_project"], used["partitions_per_project"]) == (3, 510)
    full = await alice.request("POST", path, json={"name": "third", **body})
    problem(full, 403, "quota_exceeded")


async def test_a_quote_is_the_sum_of_what_partitions_cost(alice: Customer) -> None:
    asked = {**SLA, "rate_per_s": RATE_PER_S, "partitions": 4}
    quote = (await alice.request("POST", "/v1/quotes", json=asked)).json()
    group = await create(alice)
    assert quote["price"] == group["price"]
    more = {**SLA, "rate_per_s": RATE_PER_S, "partitions": 8, "replaces_group_id": group["id"]}
    grown = (await alice.request("POST", "/v1/quotes", json=more)).json()
    assert grown["admissible"]


async def test_all_partitions_are_deleted_with_their_group(alice: Customer, coordinator: FakeCoordinator) -> None:
    group = await create(alice)
    assert len(coordinator.groups) == 4
    deleted = await alice.request("DELETE", f"/v1/groups/{group['id']}")
    assert deleted.status_code == 204
    assert not coordinator.groups
    again = await create(alice)
    assert again["id"] != group["id"]


async def test_a_lost_answer_is_asked_for_again(
    alice: Customer,
    coordinator: FakeCoordinator,
    services: Services,
    worker_engine: AsyncEngine,
) -> None:
    coordinator.lose_partitions_answers = 1
    body = {"name": "orders", **SLA, "rate_per_s": RATE_PER_S, "partitions": 4}
    answer = await alice.request("POST", f"/v1/projects/{alice.project_id}/groups", json=body)
    problem(answer, 503, "coordinator_unavailable")
    reconciler = Reconciler(worker_engine, services.coordinator, age_s=0)
    await reconciler.run()
    (group,) = (await alice.get(f"/v1/projects/{alice.project_id}/groups"))["items"]
    assert (group["status"], group["partitions"]) == ("active", 4)
    coordinator.lose_partitions_answers = 1
    grown = await alice.request("PATCH", f"/v1/groups/{group['id']}", json={"partitions": 6})
    problem(grown, 503, "coordinator_unavailable")
    shown = await partitions_of(alice, group)
    assert shown["is_changing"]
    coordinator.leaderless = True
    again = await alice.request("PATCH", f"/v1/groups/{group['id']}", json={"partitions": 6})
    problem(again, 503, "coordinator_unavailable")
    coordinator.leaderless = False
    assert (await partitions_of(alice, group))["is_changing"], "it may have happened before"
    await reconciler.run()
    shown = await partitions_of(alice, group)
    assert (shown["is_changing"], len(shown["items"])) == (False, 6)
    assert (await alice.get(f"/v1/groups/{group['id']}"))["partitions"] == 6


async def test_the_coordinator_may_be_away_while_handles_are_asked_for(
    alice: Customer, coordinator: FakeCoordinator
) -> None:
    group = await create(alice)
    coordinator.down = True
    handle = await alice.get(f"/v1/groups/{group['id']}/handle")
    assert len(handle["partitions"]["members"]) == 4
    assert datetime.fromisoformat(handle["token_expires_at"]) > datetime.now(UTC)


async def test_checkpoints_are_kept_by_consumer_and_partition(alice: Customer, bob: Customer) -> None:
    group = await create(alice)
    path = f"/v1/groups/{group['id']}/checkpoints"
    assert (await alice.get(f"{path}/billing")) == {"consumer": "billing", "offsets": []}

    async def save(consumer: str, offsets: dict[int, int], **more: Any) -> dict[int, int]:
        listed = [{"partition": number, "next_offset": offset} for number, offset in offsets.items()]
        answer = await alice.request("PUT", f"{path}/{consumer}", json={"offsets": listed, **more})
        assert answer.status_code == 200, answer.text
        return {each["partition"]: each["next_offset"] for each in answer.json()["offsets"]}

    assert await save("billing", {0: 10, 3: 7}) == {0: 10, 3: 7}
    assert await save("billing", {1: 4, 0: 8}) == {0: 10, 1: 4, 3: 7}, "a late request takes nothing back"
    assert await save("billing", {0: 8}, rewind=True) == {0: 8, 1: 4, 3: 7}
    assert await save("a b/c".replace("/", "-"), {2: 1}) == {2: 1}
    listed = await alice.get(path)
    assert [one["consumer"] for one in listed] == ["a b-c", "billing"]
    assert (await bob.request("GET", path)).status_code == 404
    assert (await alice.request("DELETE", f"{path}/billing")).status_code == 204
    assert len(await alice.get(path)) == 1


@pytest.mark.parametrize(
    "offsets",
    [
        [],
        [{"partition": 4, "next_offset": 1}],
        [{"partition": 1, "next_offset": 1}, {"partition": 1, "next_offset": 2}],
        [{"partition": 1, "next_offset": -1}],
        [{"partition": 1}],
    ],
)
async def test_a_checkpoint_of_other_partitions_is_refused(alice: Customer, offsets: list[dict[str, int]]) -> None:
    group = await create(alice)
    path = f"/v1/groups/{group['id']}/checkpoints"
    answer = await alice.request("PUT", f"{path}/billing", json={"offsets": offsets})
    refused = problem(answer, 422, "validation_failed")
    assert refused["errors"][0]["field"].startswith("offsets")
    assert await alice.get(path) == []


async def test_a_group_keeps_checkpoints_of_so_many_consumers(alice: Customer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CONSUMERS_PER_GROUP_MAX", 2)
    group = await alice.create_group()
    path = f"/v1/groups/{group['id']}/checkpoints"
    body = {"offsets": [{"partition": 0, "next_offset": 5}]}
    for consumer in ("one", "two", "one"):
        assert (await alice.request("PUT", f"{path}/{consumer}", json=body)).status_code == 200
    problem(await alice.request("PUT", f"{path}/three", json=body), 403, "quota_exceeded")


def sample(group: str, at_ms: int, append_per_s: int, p99_us: int | None) -> dict[str, Any]:
    rates = {"append_per_s": append_per_s, "offered_per_s": append_per_s, "throttled_per_s": 0, "committed_entries": 5}
    return {"group": group, "at_ms": at_ms, **rates, "p50_us": None, "p99_us": p99_us, "epoch": at_ms}


def test_samples_of_partitions_are_one_of_all() -> None:
    together = Together(3)
    assert together.take(sample("a", 1, 10, 100)) is None
    assert together.take(sample("b", 2, 20, None)) is None
    found = together.take(sample("c", 3, 30, 300))
    assert found is not None
    assert (found["append_per_s"], found["committed_entries"], found["p50_us"], found["p99_us"]) == (60, 15, None, 300)
    assert together.take(sample("a", 4, 1, None)) is None
    assert together.take(sample("b", 5, 2, None)) is None
    without_c = together.take(sample("a", 6, 4, None))
    assert without_c is not None
    assert without_c["append_per_s"] == 3, "a partition without a head delays no other"
    one = Together(1).take(sample("a", 1, 10, 100))
    assert one is not None
    assert "group" not in one
