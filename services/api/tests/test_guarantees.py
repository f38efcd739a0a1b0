"""Guarantees of projects: given, changed, taken back, billed by the second, and settled when an answer was lost."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import psycopg
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.guaranteed.calculator import Change, Period, hourly_micros, periods
from quorate_api.http.services import Services
from quorate_api.months.calendar import month_begin, month_end
from quorate_api.pricing import prices
from quorate_api.worker.month_close import close_months
from quorate_api.worker.reconcile import Reconciler
from support.coordinator import CAPACITY_PER_S, TOKENS_PER_APPEND, FakeCoordinator
from support.customer import SLA, Customer, problem
from support.issuer import UNTAXED

NOVEMBER = datetime(2026, 11, 1, tzinfo=UTC)
SHARED = 100_000


def path(customer: Customer) -> str:
    return f"/v1/projects/{customer.project_id}/guarantee"


async def put(customer: Customer, shared: int = SHARED, **more: Any) -> httpx2.Response:
    return await customer.request("PUT", path(customer), json={"shared_tokens_per_s": shared, **more})


def test_periods_end_with_the_next_change_and_cost_whole_seconds() -> None:
    project = uuid.UUID(int=1)
    hours = [NOVEMBER + timedelta(hours=number) for number in range(4)]
    changes = [
        Change(project, "p", hours[0], 100, 5),
        Change(project, "p", hours[1], 0, 0),
        Change(project, "p", hours[2], 300, 15),
    ]
    first, last = periods(changes)
    assert (first.start, first.end, last.start, last.end) == (hours[0], hours[1], hours[2], None)
    assert first.seconds(NOVEMBER, hours[3]) == 3_600
    assert last.seconds(NOVEMBER, hours[3]) == 3_600
    assert last.seconds(NOVEMBER, hours[1]) == 0
    assert last.seconds(hours[3], hours[3] + timedelta(seconds=1.9)) == 1


def test_months_that_follow_one_another_add_up() -> None:
    start = datetime(2026, 10, 5, 3, 4, 5, 600_000, tzinfo=UTC)
    period = Period(uuid.UUID(int=1), "p", start, start + timedelta(days=61, microseconds=700_000), 1_000, 5)
    begins = [month_begin(start)]
    while begins[-1] < start + timedelta(days=90):
        begins.append(month_end(begins[-1]))
    seconds = [period.seconds(begin, month_end(begin)) for begin in begins]
    assert sum(seconds) == 61 * 86_400 + 1  # from second 5 to second 6


def test_the_price_is_rounded_up() -> None:
    (price_list,) = prices.LISTS
    assert hourly_micros(1_000_000, price_list) == price_list.guarantee_hourly_micros
    assert hourly_micros(1, price_list) == 1
    assert hourly_micros(0, price_list) == 0


async def test_a_guarantee_is_given_shown_and_taken_back(alice: Customer, bob: Customer) -> None:
    group = await alice.create_group()
    none = await alice.get(path(alice))
    assert (none["shared_tokens_per_s"], none["revision"], none["since"]) == (0, 0, None)
    assert none["groups"][0]["tokens_per_append"] == TOKENS_PER_APPEND
    answer = await put(alice)
    assert answer.status_code == 200, answer.text
    shown = answer.json()
    assert shown == await alice.get(path(alice))
    assert shown["price"]["hourly_micros"] == hourly_micros(SHARED, prices.at(datetime.now(UTC)))
    assert (shown["shared_tokens_per_s"], shown["revision"], shown["is_settled"]) == (SHARED, 1, True)
    assert shown["policy"] == {"name": "drf", "groups": []}
    (own,) = shown["groups"]
    assert (own["group_id"], own["name"]) == (group["id"], "orders")
    assert own["most_appends_per_s"] == SLA["rate_per_s"] + SHARED // TOKENS_PER_APPEND
    assert (own["wanted_per_s"], own["share_per_s"]) == (70, 50)
    assert (await put(alice)).json()["revision"] == 1, "a repetition changes nothing"
    policy = {"name": "hierarchical_drf", "groups": [{"group_id": group["id"], "weight": 3, "class": "prod"}]}
    changed = (await put(alice, policy=policy)).json()
    assert (changed["revision"], changed["policy"]) == (2, policy)
    problem(await bob.request("GET", path(alice)), 404, "not_found")
    problem(await bob.request("PUT", path(alice), json={"shared_tokens_per_s": 1}), 404, "not_found")
    for _ in range(2):
        assert (await alice.request("DELETE", path(alice))).status_code == 204
    assert (await alice.get(path(alice)))["since"] is None


async def test_the_handle_says_what_is_shared(alice: Customer) -> None:
    group = await alice.create_group()
    handle = f"/v1/groups/{group['id']}/handle"
    assert (await alice.get(handle))["guarantee"] is None
    await put(alice)
    assert (await alice.get(handle))["guarantee"] == {
        "shared_tokens_per_s": SHARED,
        "tokens_per_append": TOKENS_PER_APPEND,
        "shared_appends_per_s": SHARED // TOKENS_PER_APPEND,
    }


async def test_misuse_changes_nothing(alice: Customer, coordinator: FakeCoordinator) -> None:
    group = await alice.create_group()
    other = await alice.create_project("other")
    assert (await put(alice)).status_code == 200
    before = await alice.get(path(alice))
    below = SLA["rate_per_s"] * TOKENS_PER_APPEND + 99
    cases: list[tuple[dict[str, Any], str]] = [
        ({"shared_tokens_per_s": -1}, "shared_tokens_per_s"),
        ({"shared_tokens_per_s": float(1)}, "shared_tokens_per_s"),
        ({"shared_tokens_per_s": 100, "max_tokens_per_s": below}, "max_tokens_per_s"),
        ({"shared_tokens_per_s": 1, "policy": {"name": "best"}}, "policy.name"),
        ({"shared_tokens_per_s": 1, "policy": {"groups": [{"group_id": group["id"], "weight": 0}]}}, "weight"),
        ({"shared_tokens_per_s": 1, "policy": {"groups": [{"group_id": group["id"], "weight": "NaN"}]}}, "weight"),
        ({"shared_tokens_per_s": 1, "policy": {"groups": [{"group_id": str(uuid.uuid4())}]}}, "policy.groups"),
        ({"shared_tokens_per_s": 1, "more": 1}, "more"),
    ]
    for body, field in cases:
        refused = problem(await alice.request("PUT", path(alice), json=body), 422, "validation_failed")
        assert field in refused["errors"][0]["field"], refused
    nan = (
        b'{"shared_tokens_per_s": 1, "policy": {"groups": [{"group_id": "'
        + group["id"].encode()
        + b'", "weight": NaN}]}}'
    )
    answer = await alice.request("PUT", path(alice), content=nan, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422), answer.text
    foreign = {"shared_tokens_per_s": 1, "policy": {"groups": [{"group_id": group["id"]}]}}
    answer = await alice.request("PUT", f"/v1/projects/{other}/guarantee", json=foreign)
    assert problem(answer, 422, "validation_failed")["errors"][0]["field"] == "policy.groups"
    refused = problem(await put(alice, CAPACITY_PER_S + 1), 409, "guarantee_refused")
    assert f"{CAPACITY_PER_S} fit now" in refused["detail"]
    coordinator.refuse_guarantee_once = True
    problem(await put(alice, SHARED + 1), 409, "guarantee_refused")
    assert await alice.get(path(alice)) == before


async def test_a_quote_has_the_price_and_the_answer(alice: Customer, coordinator: FakeCoordinator) -> None:
    quote = await alice.post(f"{path(alice)}/quote", {"shared_tokens_per_s": SHARED})
    assert quote.json()["admissible"] is True
    assert quote.json()["price"]["monthly_micros"] == quote.json()["price"]["hourly_micros"] * 730
    refused = (await alice.post(f"{path(alice)}/quote", {"shared_tokens_per_s": CAPACITY_PER_S + 1})).json()
    assert (refused["admissible"], refused["refusal"]["largest_shared_tokens_per_s"]) == (False, CAPACITY_PER_S)
    assert coordinator.guarantees == {}


async def test_quotas_and_projects(alice: Customer, owner: psycopg.Connection, coordinator: FakeCoordinator) -> None:
    owner.execute(
        "INSERT INTO quota_overrides VALUES (%s, 'total_guaranteed_tokens_per_s', %s)",
        [alice.organization_id, SHARED],
    )
    problem(await put(alice, SHARED + 1), 403, "quota_exceeded")
    assert (await put(alice)).status_code == 200
    quota = {each["code"]: each for each in (await alice.get("/v1/quotas"))["items"]}
    assert quota["total_guaranteed_tokens_per_s"]["used"] == SHARED
    refused = await alice.request("DELETE", f"/v1/projects/{alice.project_id}")
    assert "guarantee" in problem(refused, 409, "project_not_empty")["detail"]
    await alice.create_group()
    assert coordinator.quoted[-1]["project_id"] == alice.project_id, "its guarantee counts"
    await alice.request("DELETE", path(alice))
    await alice.create_group("more")
    assert "project_id" not in coordinator.quoted[-1]


async def test_a_lost_answer_is_asked_for_again(
    alice: Customer, coordinator: FakeCoordinator, worker_engine: AsyncEngine, services: Services
) -> None:
    coordinator.lose_guarantee_answers = 1
    problem(await put(alice), 503, "coordinator_unavailable")
    unsettled = await alice.get(path(alice))
    assert (unsettled["is_settled"], unsettled["since"]) == (False, None)
    coordinator.leaderless = True
    problem(await put(alice), 503, "coordinator_unavailable")
    coordinator.leaderless = False
    assert not (await alice.get(path(alice)))["is_settled"], "it may have been given before"
    await Reconciler(worker_engine, services.coordinator, age_s=0).run()
    settled = await alice.get(path(alice))
    assert (settled["is_settled"], settled["shared_tokens_per_s"]) == (True, SHARED)
    told = coordinator.guarantees[uuid.UUID(alice.project_id)]["since"]
    assert datetime.fromisoformat(settled["since"]) == datetime.fromisoformat(told), "billed from when it holds"
    coordinator.lose_guarantee_answers = 1
    problem(await put(alice, 2 * SHARED), 503, "coordinator_unavailable")
    assert (await put(alice, 3 * SHARED)).json()["revision"] == 3, "the next change settles the one before"


async def test_it_is_billed_by_the_second(
    alice: Customer, owner: psycopg.Connection, worker_engine: AsyncEngine
) -> None:
    now = datetime.now(UTC)
    this = month_begin(now)
    last = month_begin(this - timedelta(days=1))
    assert (await put(alice)).status_code == 200
    rows = "ALTER TABLE guarantees {} TRIGGER confirmed_stays"
    owner.execute(rows.format("DISABLE"))
    owner.execute("UPDATE guarantees SET since = %s, hourly_micros = 3600", [this - timedelta(days=2)])
    owner.execute(rows.format("ENABLE"))
    invoice = await alice.get("/v1/invoices/current")
    (line,) = invoice["lines"]
    assert (line["kind"], line["group_id"], line["project_id"]) == ("guarantee", None, alice.project_id)
    assert line["amount_micros"] == line["quantity"] == pytest.approx((now - this).total_seconds(), abs=60)
    spend = await alice.get("/v1/spend")
    assert spend["by_kind"]["guarantee"] == pytest.approx(line["amount_micros"], abs=60)
    (project,) = spend["projects"]
    assert (project["project_id"], project["spent_micros"]) == (alice.project_id, spend["spent_micros"])
    assert project["previous_micros"] == 2 * 86_400
    assert 'kind="guarantee"' in (await alice.request("GET", "/v1/spend/metrics")).text
    assert await close_months(worker_engine, UNTAXED, this + timedelta(days=2), delay_s=0) >= 1
    (head,) = (await alice.get("/v1/invoices"))["items"]
    issued = await alice.get(f"/v1/invoices/{head['id']}")
    assert [(each["kind"], each["amount_micros"]) for each in issued["lines"]] == [("guarantee", 2 * 86_400)]
    assert datetime.fromisoformat(issued["period_start"]) == last
    assert owner.execute("SELECT count(*) FROM billed_quantities").fetchone() == (0,)
    assert (await alice.request("GET", f"/v1/invoices/{head['id']}/document.pdf")).content.startswith(b"%PDF")
    assert "Guarantee" in (await alice.request("GET", f"/v1/invoices/{head['id']}/lines.csv")).text


async def test_a_cap_leaves_no_room_for_it(alice: Customer) -> None:
    cap = {"monthly_micros": 1_000_000, "thresholds_percent": [100], "action": "suspend"}
    answer = await alice.request("PUT", "/v1/budgets", json=cap)
    assert answer.is_success, answer.text
    problem(await put(alice), 409, "spend_cap")
    assert (await put(alice, 1_000)).status_code == 200
    problem(await put(alice, SHARED), 409, "spend_cap")


async def test_confirmed_changes_stay(alice: Customer, owner: psycopg.Connection) -> None:
    await put(alice)
    for statement in ("UPDATE guarantees SET hourly_micros = 1", "DELETE FROM guarantees"):
        with pytest.raises(psycopg.errors.RaiseException, match="append-only"):
            owner.execute(statement)


def test_limits_are_those_of_the_coordinators() -> None:
    assert (limits.GUARANTEE_WEIGHT_MAX, limits.GUARANTEE_POLICY_GROUPS_MAX) == (1_000_000, 1_000)
