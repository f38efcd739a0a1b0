"""Spend caps: what they decide, whom they limit, and that they end."""

import uuid
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.billing.account import Account
from quorate_api.caps.decision import Cap, Position, access_of, acting, reached_micros
from quorate_api.caps.outlook import Outlook, look
from quorate_api.http.services import Services
from quorate_api.months.calendar import SeenMonth
from quorate_api.telemetry.windows import DAY_S, WINDOW_S, Window
from quorate_api.totals.days import DailyUse, Sums
from quorate_api.worker import caps as worker
from quorate_api.worker.caps import CapWatch
from support.coordinator import FakeCoordinator
from support.customer import Customer, problem
from support.usage import Usage

ORGANIZATION, PROJECT, OTHER = (uuid.UUID(int=number) for number in (9, 5, 6))


def cap(action: Any, monthly_micros: int = 1_000, owner: uuid.UUID | None = None) -> Cap:
    return Cap(uuid.UUID(int=1), ORGANIZATION, owner, action, monthly_micros)


# --- Decisions


def test_a_throttle_acts_once_the_month_costs_it() -> None:
    assert reached_micros(cap("throttle"), Position(999, 5_000, 100.0)) is None
    assert reached_micros(cap("throttle"), Position(1_000, 5_000)) == 1_000


def test_a_suspension_counts_what_is_certain_and_what_is_used_until_it_is_there() -> None:
    assert reached_micros(cap("suspend"), Position(100, 999)) is None
    assert reached_micros(cap("suspend"), Position(100, 1_000)) == 1_000
    ahead = 2 * limits.CAP_AHEAD_S
    assert reached_micros(cap("suspend"), Position(0, 1_000 - ahead, 2.0)) == 1_000
    assert reached_micros(cap("suspend"), Position(0, 1_000 - ahead - 1, 2.0)) is None


def test_the_strictest_cap_of_a_groups_project_and_organization_holds() -> None:
    whole, own, others = cap("throttle"), cap("suspend", owner=PROJECT), cap("suspend", owner=OTHER)
    assert access_of(PROJECT, []) == "full"
    assert access_of(PROJECT, [others]) == "full"
    assert access_of(PROJECT, [whole]) == "reserved"
    assert access_of(PROJECT, [whole, own, others]) == access_of(PROJECT, [own, whole]) == "suspended"


def test_a_cap_that_was_changed_has_not_acted() -> None:
    acted = {cap("suspend").key}
    assert acting([cap("suspend")], acted) == [cap("suspend")]
    assert acting([cap("suspend", 2_000), cap("throttle")], acted) == []


# --- The certain cost of a month

START, END = datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)
START_S = int(START.timestamp())
NOW = START + timedelta(days=10)
SECOND_MICROS = 1_000
SLA = {"durability": "persistent", "rate_per_s": 1, "request_size_bytes": 1, "replication_degree": 3}


def group(number: int = 1, project: uuid.UUID = PROJECT, deleted: datetime | None = None) -> Any:
    return SimpleNamespace(
        id=uuid.UUID(int=number), organization_id=ORGANIZATION, project_id=project, name="orders", sla=SLA,
        hourly_micros=SECOND_MICROS * 3_600, active_at=START, delete_requested_at=deleted,
    )  # fmt: skip


def seen(
    *groups: Any, used: DailyUse | None = None, held: dict[uuid.UUID, int] | None = None, at: Any = NOW
) -> Outlook:
    nothing = DailyUse.of([])
    return look(Account(list(groups), {}, {}, {}), used or nothing, SeenMonth(START, END, at), held or {})


def appended(millions: int) -> DailyUse:
    return DailyUse.of([(uuid.UUID(int=1), START_S, Sums(millions * 1_000_000, 0, 0, 0))])


def test_reservations_go_on_until_the_months_end_and_those_of_deleted_groups_do_not() -> None:
    both = seen(group(), group(2, OTHER, deleted=NOW))
    ten_days, month = 10 * DAY_S * SECOND_MICROS, 30 * DAY_S * SECOND_MICROS
    assert both.position(None) == Position(2 * ten_days, month + ten_days)
    assert both.position(PROJECT) == Position(ten_days, month)
    assert both.position(OTHER) == Position(ten_days, ten_days)
    assert both.position(uuid.UUID(int=7)) == Position(0, 0)


def test_kept_data_costs_until_the_months_end() -> None:
    held = {uuid.UUID(int=1): 1_000_000_000, uuid.UUID(int=2): 1_000_000_000}
    kept = seen(group(), group(2, deleted=NOW), held=held).position(None)
    nothing = seen(group(), group(2, deleted=NOW)).position(None)
    assert kept.spent_micros == nothing.spent_micros
    # 20 days of a month of 730 hours, at 0.12 USD per GB-month.
    assert kept.certain_micros - nothing.certain_micros == round(120_000 * 20 * 24 / 730)


def test_a_whole_month_of_present_reservations_and_data() -> None:
    held = {uuid.UUID(int=1): 1_000_000_000}
    looked = seen(group(), group(2, OTHER, deleted=NOW), held=held)
    month = 31 * DAY_S * SECOND_MICROS
    kept = round(120_000 * 31 * 24 / 730)
    assert looked.whole_month == {None: month + kept, PROJECT: month + kept}


def test_growth_is_that_of_use_in_groups_that_were_there() -> None:
    before = seen(group(), used=appended(1))
    later = NOW + timedelta(seconds=10)
    after = seen(group(), group(2, OTHER), used=appended(3), at=later)
    assert after.position(None, before).usage_micros_per_s == 2 * 150_000 / 10
    assert after.position(OTHER, before).usage_micros_per_s == 0.0, "a new reservation is no use that grows"
    assert before.position(None, after).usage_micros_per_s == 0.0
    assert after.position(None).usage_micros_per_s == 0.0


# --- Over the API


async def put(customer: Customer, **body: Any) -> dict[str, Any]:
    answer = await customer.request("PUT", "/v1/budgets", json=body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def least(customer: Customer) -> int:
    """The cost of a month without any use, as a refused cap says it."""
    answer = await customer.request("PUT", "/v1/budgets", json={"monthly_micros": 1, "action": "suspend"})
    (error,) = problem(answer, 422, "validation_failed")["errors"]
    assert error["field"] == "monthly_micros"
    return int(error["message"].split("at least ")[1].split(".")[0])


async def access(customer: Customer, group: dict[str, Any]) -> str:
    return str((await customer.get(f"/v1/groups/{group['id']}"))["access"])


@pytest.fixture
def watch(worker_engine: AsyncEngine, services: Services) -> CapWatch:
    return CapWatch(worker_engine, services.coordinator)


async def append(engine: AsyncEngine, customer: Customer, group: dict[str, Any], entries: int) -> None:
    usage = Usage(engine, {group["id"]: customer})
    start_s = int(datetime.now(UTC).timestamp()) // WINDOW_S * WINDOW_S
    more = {"committed_entries": entries, "committed_bytes": 64 * entries, "stored_bytes": 64 * entries}
    await usage.ingest([Window(group["id"], 1, "a" * 8, 1, start_s, "head", **more)])


ROOM_MICROS = 10_000_000
ENTRIES_OF_ROOM = 100_000_000  # at 0.15 USD per million, with what a whole month costs more than the present one


async def test_a_suspension_acts_once_and_lasts_until_the_cap_is_raised(
    alice: Customer, coordinator: FakeCoordinator, worker_engine: AsyncEngine, watch: CapWatch
) -> None:
    group = await alice.create_group()
    budget = {"action": "suspend", "monthly_micros": await least(alice) + ROOM_MICROS}
    made = await put(alice, **budget)
    assert (made["action"], made["acted"]) == ("suspend", None)
    assert await watch.run() == 0
    assert (await access(alice, group), coordinator.accesses) == ("full", [])
    await append(worker_engine, alice, group, ENTRIES_OF_ROOM)
    assert await watch.run() == 1
    assert await access(alice, group) == "suspended"
    assert await watch.run() == await CapWatch(worker_engine, watch.coordinator).run() == 0, "once, after a restart too"
    assert coordinator.accesses == [(uuid.UUID(group["id"]), "suspended")]
    acted = (await alice.get(f"/v1/budgets/{made['id']}"))["acted"]
    assert acted["action"] == "suspend"
    assert acted["amount_micros"] >= budget["monthly_micros"]
    await put(alice, **budget, thresholds_percent=[10])
    await watch.run()
    assert await access(alice, group) == "suspended", "other thresholds are no other cap"
    raised = await put(alice, action="suspend", monthly_micros=3 * budget["monthly_micros"])
    assert raised["acted"] is None
    await watch.run()
    assert await access(alice, group) == "full"
    kinds = [event["kind"] for event in (await alice.get(f"/v1/groups/{group['id']}/events"))["items"]]
    assert kinds == ["group_requested"], "the worker's follower brings the coordinator's events"


async def test_a_throttle_leaves_the_reservation_and_ends_with_the_budget(
    alice: Customer, owner: psycopg.Connection, watch: CapWatch
) -> None:
    group = await alice.create_group()
    since = datetime.now(UTC) - timedelta(hours=1)
    owner.execute("UPDATE groups SET created_at = %s, active_at = %s", (since, since))
    made = await put(alice, action="throttle", monthly_micros=1)
    assert await watch.run() == 1
    assert await access(alice, group) == "reserved"
    assert (await alice.request("DELETE", f"/v1/budgets/{made['id']}")).status_code == 204
    assert await watch.run() == 0
    assert await access(alice, group) == "full"


async def test_a_new_month_begins_with_full_access(alice: Customer, owner: psycopg.Connection, watch: CapWatch) -> None:
    group = await alice.create_group()
    since = datetime.now(UTC) - timedelta(hours=1)
    owner.execute("UPDATE groups SET created_at = %s, active_at = %s", (since, since))
    await put(alice, action="throttle", monthly_micros=10**12)
    owner.execute(
        "INSERT INTO budget_actions SELECT gen_random_uuid(), organization_id, id, '2026-01', action, monthly_micros,"
        " monthly_micros, now() FROM budgets"
    )
    owner.execute("UPDATE groups SET access_wanted = 'reserved', access = 'reserved'")
    assert await watch.run() == 0
    assert await access(alice, group) == "full"


async def test_a_projects_cap_limits_its_own_groups_and_nobody_elses(
    alice: Customer, bob: Customer, owner: psycopg.Connection, watch: CapWatch
) -> None:
    other = await alice.create_project("other")
    answer = await alice.post(f"/v1/projects/{other}/groups", {"name": "logs", **SLA, "rate_per_s": 10})
    assert answer.status_code == 201, answer.text
    own, others, bobs = await alice.create_group(), answer.json(), await bob.create_group()
    since = datetime.now(UTC) - timedelta(hours=1)
    owner.execute("UPDATE groups SET created_at = %s, active_at = %s", (since, since))
    await put(alice, action="throttle", monthly_micros=1, project_id=alice.project_id)
    assert await watch.run() == 1
    assert [await access(alice, own), await access(alice, others), await access(bob, bobs)] == [
        "reserved", "full", "full",
    ]  # fmt: skip


async def test_what_the_coordinator_could_not_do_is_done_later(
    alice: Customer, coordinator: FakeCoordinator, owner: psycopg.Connection, watch: CapWatch
) -> None:
    one, two = await alice.create_group("one"), await alice.create_group("two")
    since = datetime.now(UTC) - timedelta(hours=1)
    owner.execute("UPDATE groups SET created_at = %s, active_at = %s", (since, since))
    await put(alice, action="throttle", monthly_micros=1)
    coordinator.odd[uuid.UUID(one["id"])] = 500
    assert await watch.run() == 1
    assert [await access(alice, one), await access(alice, two)] == ["full", "reserved"]
    coordinator.odd.clear()
    await watch.run()
    assert await access(alice, one) == "reserved"


async def test_one_organizations_error_does_not_delay_the_others_caps(
    alice: Customer, bob: Customer, owner: psycopg.Connection, watch: CapWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = worker.outlook.look

    def broken(account: Any, *more: Any) -> Any:
        assert str(account.groups[0].organization_id) != alice.organization_id, "broken on purpose"
        return whole(account, *more)

    monkeypatch.setattr(worker.outlook, "look", broken)
    groups = {customer.email: await customer.create_group() for customer in (alice, bob)}
    since = datetime.now(UTC) - timedelta(hours=1)
    owner.execute("UPDATE groups SET created_at = %s, active_at = %s", (since, since))
    for customer in (alice, bob):
        await put(customer, action="throttle", monthly_micros=1)
    assert await watch.run() == 1
    assert await access(bob, groups[bob.email]) == "reserved"


async def test_reservations_that_do_not_fit_below_a_cap_are_refused(alice: Customer, owner: psycopg.Connection) -> None:
    group = await alice.create_group()
    roomy = await least(alice)
    await put(alice, action="suspend", monthly_micros=roomy + 1_000)
    path = f"/v1/projects/{alice.project_id}/groups"
    refused = problem(await alice.post(path, {"name": "more", **SLA, "rate_per_s": 5_000}), 409, "spend_cap")
    assert "spend cap" in refused["detail"]
    larger = await alice.request("PATCH", f"/v1/groups/{group['id']}", json={"rate_per_s": 50_000})
    problem(larger, 409, "spend_cap")
    smaller = await alice.request("PATCH", f"/v1/groups/{group['id']}", json={"rate_per_s": 500})
    assert smaller.status_code == 200, smaller.text
    assert owner.execute("SELECT count(*) FROM groups").fetchone() == (1,)
    await put(alice, action="throttle", monthly_micros=roomy + 1_000)
    assert (await alice.post(path, {"name": "more", **SLA, "rate_per_s": 5_000})).status_code == 201


async def test_actions_stay_as_they_are(alice: Customer, owner: psycopg.Connection, watch: CapWatch) -> None:
    await alice.create_group()
    since = datetime.now(UTC) - timedelta(hours=1)
    owner.execute("UPDATE groups SET created_at = %s, active_at = %s", (since, since))
    await put(alice, action="throttle", monthly_micros=1)
    await watch.run()
    for statement in ("UPDATE budget_actions SET amount_micros = 5", "DELETE FROM budget_actions"):
        with pytest.raises(psycopg.errors.RaiseException, match="append-only"):
            owner.execute(statement)
