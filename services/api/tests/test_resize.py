"""Groups change their SLA in place: admission, price, bills and reports of each period, unfinished requests."""

import asyncio
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api.http.services import Services
from quorate_api.worker.month_close import close_months
from quorate_api.worker.reconcile import Reconciler
from support.coordinator import CAPACITY_PER_S, FakeCoordinator
from support.customer import Customer, problem
from support.issuer import UNTAXED


async def resize(customer: Customer, group: dict[str, Any], **changes: Any) -> Any:
    return await customer.request("PATCH", f"/v1/groups/{group['id']}", json=changes)


async def test_a_group_gets_another_sla_and_price(alice: Customer, coordinator: FakeCoordinator) -> None:
    group = await alice.create_group()
    path = f"/v1/groups/{group['id']}"
    answer = await resize(alice, group, rate_per_s=2 * group["sla"]["rate_per_s"], retention_age_s=3_600)
    assert answer.status_code == 200, answer.text
    resized = answer.json()
    assert resized["sla"] == group["sla"] | {"rate_per_s": 2 * group["sla"]["rate_per_s"], "retention_age_s": 3_600}
    assert resized["price"]["hourly_micros"] == pytest.approx(2 * group["price"]["hourly_micros"], abs=3)
    assert resized["epoch"] == group["epoch"] + 1
    assert (await alice.get(path)) == resized
    assert coordinator.quoted[-1]["replaces_group_id"] == group["id"]
    assert [(each["revision"], each["sla"]["rate_per_s"]) for each in coordinator.resizes] == [(2, 2_000)]
    again = await resize(alice, group, rate_per_s=2_000)
    assert (again.json(), again.headers["etag"]) == (resized, answer.headers["etag"])
    assert len(coordinator.resizes) == 1, "nothing was to be done"
    back = (await resize(alice, group, retention_age_s=None, rate_per_s=1_000)).json()
    assert back["sla"] == group["sla"]
    assert back["price"] == group["price"]
    kinds = [event["kind"] for event in (await alice.get(f"{path}/events"))["items"]]
    assert kinds.count("resize_requested") == 2


async def test_what_does_not_fit_is_refused_and_nothing_changes(
    alice: Customer, coordinator: FakeCoordinator, owner: psycopg.Connection
) -> None:
    group = await alice.create_group()
    before = owner.execute("SELECT * FROM groups").fetchall()
    refused = problem(await resize(alice, group, rate_per_s=CAPACITY_PER_S + 1), 409, "admission_refused")
    assert refused["refusal"]["scarce_resource"] == "cpu"
    assert refused["refusal"]["largest_sla_that_fits"]["rate_per_s"] == CAPACITY_PER_S, "its own share does not count"
    assert coordinator.resizes == [], "the quote said so"
    coordinator.refuse_resize_once = True
    problem(await resize(alice, group, rate_per_s=5_000), 409, "admission_refused")
    seen = owner.execute("SELECT * FROM groups").fetchall()
    assert seen == before
    assert owner.execute("SELECT count(*) FROM former_slas").fetchone() == (0,)
    assert (await resize(alice, group, rate_per_s=5_000)).status_code == 200


async def test_what_is_not_valid(alice: Customer, bob: Customer, coordinator: FakeCoordinator) -> None:
    group = await alice.create_group()
    for wrong in (
        {"durability": "in_memory"}, {"replication_degree": 2}, {"region": "mars"}, {"name": "x"}, {"rate_per_s": 0},
        {"rate_per_s": "2"}, {"min_replicas": 4}, {"min_replicas": 0}, {"retention_bytes": 1}, {"retention_age_s": 1},
    ):  # fmt: skip
        problem(await resize(alice, group, **wrong), 422, "validation_failed")
    problem(await resize(bob, group, rate_per_s=2_000), 404, "not_found")
    path = f"/v1/groups/{group['id']}"
    stale = await alice.request("PATCH", path, json={"rate_per_s": 2}, headers={"If-Match": '"1"'})
    problem(stale, 412, "precondition_failed")
    assert (await resize(alice, group)).json()["sla"] == group["sla"], "nothing asked for, nothing done"
    assert coordinator.resizes == []
    view = next(iter(coordinator.groups.values()))
    view["status"] = "lost"
    problem(await resize(alice, group, rate_per_s=2_000), 409, "group_lost")
    view["status"] = "active"
    assert (await resize(alice, group, rate_per_s=2_000)).status_code == 200


async def test_the_quota_counts_what_is_added(alice: Customer, owner: psycopg.Connection) -> None:
    group = await alice.create_group()
    owner.execute("INSERT INTO quota_overrides VALUES (%s, 'total_rate_per_s', 1500)", (alice.organization_id,))
    refused = problem(await resize(alice, group, rate_per_s=1_501), 403, "quota_exceeded")
    assert "1500" in refused["detail"]
    assert (await resize(alice, group, rate_per_s=1_500)).status_code == 200
    assert (await resize(alice, group, rate_per_s=10)).status_code == 200, "less is always within the quota"


async def test_an_answer_that_was_lost(
    alice: Customer, coordinator: FakeCoordinator, worker_engine: AsyncEngine, services: Services,
    owner: psycopg.Connection,
) -> None:  # fmt: skip
    """The worker learns the outcome, and so does a repetition."""
    group = await alice.create_group()
    coordinator.lose_resize_answers = 1
    problem(await resize(alice, group, rate_per_s=2_000), 503, "coordinator_unavailable")
    assert (await alice.get(f"/v1/groups/{group['id']}"))["sla"]["rate_per_s"] == 1_000
    done_at = datetime.fromisoformat(next(iter(coordinator.groups.values()))["sla_since"])
    await Reconciler(worker_engine, services.coordinator, age_s=0).run()
    assert (await alice.get(f"/v1/groups/{group['id']}"))["sla"]["rate_per_s"] == 2_000
    assert owner.execute("SELECT until FROM former_slas").fetchone() == (done_at,), "the price changed when it was done"
    coordinator.lose_resize_answers = 1
    problem(await resize(alice, group, rate_per_s=3_000), 503, "coordinator_unavailable")
    assert (await resize(alice, group, rate_per_s=4_000)).json()["sla"]["rate_per_s"] == 4_000
    assert [each["revision"] for each in coordinator.resizes] == [2, 2, 3, 3, 4]
    coordinator.down = True
    problem(await resize(alice, group, rate_per_s=5_000), 503, "coordinator_unavailable")
    coordinator.down = False
    rows = owner.execute("SELECT revision, sla->>'rate_per_s' FROM former_slas ORDER BY revision").fetchall()
    assert rows == [(1, "1000"), (2, "2000"), (3, "3000")]
    assert owner.execute("SELECT resize FROM groups").fetchone() == (None,)


async def test_a_resize_begins_once_replicas_have_moved(
    alice: Customer, coordinator: FakeCoordinator, worker_engine: AsyncEngine, services: Services,
    owner: psycopg.Connection,
) -> None:  # fmt: skip
    """The former SLA and price hold until then, and the worker learns when that is."""
    group = await alice.create_group()
    path, group_id = f"/v1/groups/{group['id']}", uuid.UUID(group["id"])
    coordinator.moves_for_growth = 2
    asked_for = group["sla"] | {"rate_per_s": 4_000, "replaces_group_id": group["id"]}
    quote = (await alice.request("POST", "/v1/quotes", json=asked_for)).json()
    assert (quote["admissible"], quote["moves"]) == (True, 2)
    asked = (await resize(alice, group, rate_per_s=4_000)).json()
    assert (asked["sla"], asked["price"]) == (group["sla"], group["price"])
    assert asked["resizing"]["sla"] == group["sla"] | {"rate_per_s": 4_000}
    assert asked["resizing"]["price"]["hourly_micros"] > group["price"]["hourly_micros"]
    placement = await alice.get(f"{path}/placement")
    assert placement["relocation"]["moves"] == [
        {"from_server": 1, "to_server": 4},
        {"from_server": 2, "to_server": 5},
    ]
    reconciler = Reconciler(worker_engine, services.coordinator, age_s=0)
    await reconciler.run()
    assert (await alice.get(path))["resizing"] == asked["resizing"]
    coordinator.leaderless = True
    problem(await resize(alice, group, rate_per_s=5_000), 503, "coordinator_unavailable")
    coordinator.leaderless = False
    assert (await alice.get(path))["resizing"] == asked["resizing"], "what was accepted is not forgotten"
    again = (await resize(alice, group, rate_per_s=4_000)).json()
    assert again["resizing"] == asked["resizing"], "it was asked for already"
    coordinator.end_moves(group_id)
    began_at = datetime.fromisoformat(coordinator.groups[group_id]["sla_since"])
    await reconciler.run()
    resized = await alice.get(path)
    assert (resized["sla"]["rate_per_s"], resized["resizing"]) == (4_000, None)
    assert resized["price"] == asked["resizing"]["price"]
    assert owner.execute("SELECT until FROM former_slas").fetchone() == (began_at,)


async def test_a_resize_whose_replicas_move_is_replaced_or_called_off(
    alice: Customer, coordinator: FakeCoordinator, owner: psycopg.Connection
) -> None:
    group = await alice.create_group()
    coordinator.moves_for_growth = 1
    await resize(alice, group, rate_per_s=4_000)
    coordinator.refuse_resize_once = True
    problem(await resize(alice, group, rate_per_s=6_000), 409, "admission_refused")
    assert (await alice.get(f"/v1/groups/{group['id']}"))["resizing"]["sla"]["rate_per_s"] == 4_000, "it goes on"
    other = (await resize(alice, group, rate_per_s=5_000)).json()
    assert other["resizing"]["sla"]["rate_per_s"] == 5_000
    problem(await resize(alice, group, partitions=2), 409, "group_not_ready")
    called_off = (await resize(alice, group, rate_per_s=1_000)).json()
    assert (called_off["sla"], called_off["price"], called_off["resizing"]) == (group["sla"], group["price"], None)
    assert owner.execute("SELECT count(*) FROM former_slas").fetchone() == (0,), "no other price was in force"
    revisions = [each["revision"] for each in coordinator.resizes]
    assert sorted(set(revisions)) == [2, 3, 4]
    assert revisions[-1] == 4
    grown = (await resize(alice, group, rate_per_s=900)).json()
    assert (grown["sla"]["rate_per_s"], coordinator.resizes[-1]["revision"]) == (900, 5)


async def test_two_at_once_are_one_after_the_other(alice: Customer, coordinator: FakeCoordinator) -> None:
    group = await alice.create_group()
    rates = (2_000, 3_000, 4_000)
    answers = await asyncio.gather(*(resize(alice, group, rate_per_s=rate) for rate in rates))
    assert {answer.status_code for answer in answers} <= {200, 412}
    done = [answer.json()["sla"]["rate_per_s"] for answer in answers if answer.status_code == 200]
    assert done
    now = (await alice.get(f"/v1/groups/{group['id']}"))["sla"]["rate_per_s"]
    view = next(iter(coordinator.groups.values()))
    assert now == view["sla"]["rate_per_s"] in rates


async def test_each_time_is_billed_at_its_price_and_shown_with_its_sla(
    alice: Customer, worker_engine: AsyncEngine, owner: psycopg.Connection
) -> None:
    """Resized in the middle of the last month's last four minutes, and again in this month."""
    group = await alice.create_group()
    cheap = group["price"]["hourly_micros"]
    dear = (await resize(alice, group, rate_per_s=3_000)).json()["price"]["hourly_micros"]
    last = (await resize(alice, group, rate_per_s=500)).json()["price"]["hourly_micros"]
    assert last < cheap < dear
    end = datetime.now(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    begun, first, second = end - timedelta(seconds=240), end - timedelta(seconds=100), end + timedelta(seconds=50)
    owner.execute("UPDATE groups SET created_at = %s, active_at = %s", (begun, begun))
    for revision, until in ((1, first), (2, second)):
        owner.execute("UPDATE former_slas SET until = %s WHERE revision = %s", (until, revision))
    assert await close_months(worker_engine, UNTAXED, end + timedelta(hours=7)) == 2, (
        "no telemetry: a credit note as well"
    )
    issued = next(each for each in (await alice.get("/v1/invoices"))["items"] if each["kind"] == "invoice")
    lines = (await alice.get(f"/v1/invoices/{issued['id']}"))["lines"]
    assert [(line["quantity"], line["unit_price_micros"]) for line in lines] == [(140, cheap), (100, dear)]
    assert "1,000 appends/s" in lines[0]["description"]
    assert "3,000 appends/s" in lines[1]["description"]
    for line in lines:
        assert abs(line["amount_micros"] - line["quantity"] * line["unit_price_micros"] / 3_600) <= 0.5

    open_lines = [line for line in (await alice.get("/v1/invoices/current"))["lines"] if line["kind"] == "reservation"]
    assert (open_lines[0]["quantity"], open_lines[0]["unit_price_micros"]) == (50, dear)
    assert open_lines[1]["unit_price_micros"] == last
    billed = sum(line["quantity"] for line in lines + open_lines)
    assert abs(billed - (datetime.now(UTC) - begun).total_seconds()) < 30

    report = await alice.get(f"/v1/groups/{group['id']}/sla", params={"month": f"{begun:%Y-%m}"})
    shown = [(each["start"], each["end"], each["sla"]["rate_per_s"]) for each in report["periods"]]
    moments = [at.isoformat().replace("+00:00", "Z") for at in (begun, first, end)]
    assert shown == [(moments[0], moments[1], 1_000), (moments[1], moments[2], 3_000)]
    now = await alice.get(f"/v1/groups/{group['id']}/sla")
    assert [each["sla"]["rate_per_s"] for each in now["periods"]] == [3_000, 500]


async def test_a_group_that_is_not_placed_yet_or_goes_is_not_resized(
    alice: Customer, owner: psycopg.Connection
) -> None:
    group = await alice.create_group()
    owner.execute("UPDATE groups SET status = 'provisioning'")
    problem(await resize(alice, group, rate_per_s=2_000), 409, "group_not_ready")
    owner.execute("UPDATE groups SET status = 'deleting', delete_requested_at = now()")
    problem(await resize(alice, group, rate_per_s=2_000), 404, "not_found")
