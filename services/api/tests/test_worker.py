"""The coordinator's events, the reconciler, the close of a month."""

import asyncio
import time
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from redis.asyncio import Redis
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.coordinator.schemas import Event, GroupView
from quorate_api.http.services import Services
from quorate_api.payments.standing import payable
from quorate_api.pricing import prices
from quorate_api.tasks import end_task
from quorate_api.worker.events import Asked, Follower
from quorate_api.worker.ingest import Ingest
from quorate_api.worker.month_close import close_months
from quorate_api.worker.reconcile import Reconciler
from quorate_api.worker.steady import keep_running
from support.coordinator import FakeCoordinator
from support.customer import SLA, Customer, new_key, problem
from support.issuer import UNTAXED
from support.replica import ReplicaLog, encoded


@pytest.fixture
def follower(worker_engine: AsyncEngine, services: Services) -> Follower:
    return Follower(worker_engine, services.coordinator)


@pytest.fixture
def reconciler(worker_engine: AsyncEngine, services: Services) -> Reconciler:
    return Reconciler(worker_engine, services.coordinator, age_s=0)


def applied(owner: psycopg.Connection) -> int:
    return owner.execute("SELECT applied_seq FROM coordinator_cursor").fetchone()[0]  # type: ignore[index]


async def test_events_change_what_is_stored(
    follower: Follower, coordinator: FakeCoordinator, alice: Customer, owner: psycopg.Connection
) -> None:
    group = await alice.create_group()
    path = f"/v1/groups/{group['id']}"
    coordinator.emit("server_registered", None, "s9 registered.", server_id=9)
    coordinator.fail_over(uuid.UUID(group["id"]))
    assert await follower.step(0) == 3
    assert applied(owner) == 3
    seen = await alice.request("GET", path)
    assert seen.json()["status"] == "degraded"
    assert seen.json()["epoch"] == 2
    assert seen.headers["etag"] == '"3"'
    events = (await alice.get(f"{path}/events"))["items"]
    assert [event["kind"] for event in events] == ["group_configured", "group_admitted", "group_requested"]
    assert events[0]["message"] == "The head failed; s2 is head."
    page = await alice.get(f"{path}/events", params={"limit": 2})
    rest = await alice.get(f"{path}/events", params={"limit": 2, "cursor": page["next_cursor"]})
    assert page["items"] + rest["items"] == events
    assert rest["next_cursor"] is None


async def test_events_applied_again_change_nothing(
    follower: Follower, coordinator: FakeCoordinator, alice: Customer, owner: psycopg.Connection
) -> None:
    group = await alice.create_group()
    first = GroupView.model_validate(coordinator.groups[uuid.UUID(group["id"])])
    coordinator.fail_over(uuid.UUID(group["id"]))
    await follower.step(0)
    before = owner.execute("SELECT * FROM groups").fetchall(), owner.execute("SELECT * FROM group_events").fetchall()
    events = [Event.model_validate(event) for event in coordinator.events]
    seen = Asked([first], {first.group_id})
    await follower.apply(0, events, seen)
    await follower.apply(1, events[1:], seen)
    assert await follower.step(0) == 0
    after = owner.execute("SELECT * FROM groups").fetchall(), owner.execute("SELECT * FROM group_events").fetchall()
    assert after == before


async def test_an_older_view_never_wins(follower: Follower, coordinator: FakeCoordinator, alice: Customer) -> None:
    group = await alice.create_group()
    group_id = uuid.UUID(group["id"])
    old = GroupView.model_validate(coordinator.groups[group_id])
    coordinator.fail_over(group_id)
    await follower.step(0)
    coordinator.emit("group_status", group_id, "Late news.")
    last = Event.model_validate(coordinator.events[-1])
    await follower.apply(last.seq - 1, [last], Asked([old], {group_id}))
    assert (await alice.get(f"/v1/groups/{group['id']}"))["epoch"] == 2


async def test_two_followers_apply_each_event_once(
    follower: Follower, coordinator: FakeCoordinator, alice: Customer, owner: psycopg.Connection
) -> None:
    group = await alice.create_group()
    for _ in range(20):
        coordinator.emit("group_status", uuid.UUID(group["id"]), "Again.", status="active")
    await asyncio.gather(*(follower.step(0) for _ in range(4)))
    assert applied(owner) == 21
    assert owner.execute("SELECT count(*) FROM group_events WHERE seq > 0").fetchone() == (21,)


async def test_events_that_were_trimmed_away(
    follower: Follower, coordinator: FakeCoordinator, alice: Customer, owner: psycopg.Connection
) -> None:
    group = await alice.create_group()
    coordinator.fail_over(uuid.UUID(group["id"]))
    for _ in range(5):
        coordinator.emit("group_status", uuid.UUID(group["id"]), "More.", status="degraded")
    coordinator.first_event = 5
    while await follower.step(0) or applied(owner) < 7:
        pass
    assert (await alice.get(f"/v1/groups/{group['id']}"))["epoch"] == 2
    events = (await alice.get(f"/v1/groups/{group['id']}/events"))["items"]
    assert [event["id"] for event in events if int(event["id"]) > 0] == ["7", "6", "5"]


async def test_a_coordinator_that_lost_its_data(
    follower: Follower, coordinator: FakeCoordinator, alice: Customer, owner: psycopg.Connection
) -> None:
    await alice.create_group()
    for _ in range(5):
        coordinator.emit("server_registered", None, "Hello.")
    await follower.step(0)
    assert applied(owner) == 6
    coordinator.events.clear()
    coordinator.groups.clear()
    await follower.step(0)
    group = await alice.create_group("after")
    await follower.step(0)
    assert applied(owner) == 1, "the new history is followed"
    assert (await alice.get(f"/v1/groups/{group['id']}/events"))["items"][0]["kind"] == "group_admitted"


async def test_a_group_deleted_before_its_request_is_repeated(alice: Customer, coordinator: FakeCoordinator) -> None:
    coordinator.lose_put_answers = 1
    path, body, key = f"/v1/projects/{alice.project_id}/groups", {"name": "a", **SLA}, new_key()
    problem(await alice.post(path, body, key), 503, "coordinator_unavailable")
    (group,) = (await alice.get(path))["items"]
    assert (await alice.request("DELETE", f"/v1/groups/{group['id']}")).status_code == 204
    problem(await alice.post(path, body, key), 404, "not_found")


async def test_the_reconciler_finishes_creates(
    reconciler: Reconciler, coordinator: FakeCoordinator, alice: Customer, owner: psycopg.Connection
) -> None:
    coordinator.lose_put_answers = 1
    path, body, key = f"/v1/projects/{alice.project_id}/groups", {"name": "a", **SLA}, new_key()
    problem(await alice.post(path, body, key), 503, "coordinator_unavailable")
    await reconciler.run()
    groups = (await alice.get(path))["items"]
    assert [group["status"] for group in groups] == ["active"]
    answer = await alice.post(path, body, key)
    assert answer.json()["id"] == groups[0]["id"], "the customer's repetition finds the same group"


async def test_the_reconciler_removes_intents_that_are_refused(
    reconciler: Reconciler, coordinator: FakeCoordinator, alice: Customer, owner: psycopg.Connection
) -> None:
    coordinator.lose_put_answers = 1
    path = f"/v1/projects/{alice.project_id}/groups"
    problem(await alice.post(path, {"name": "a", **SLA}), 503, "coordinator_unavailable")
    coordinator.groups.clear()
    coordinator.refuse_put_once = True
    await reconciler.run()
    assert (await alice.get(path))["items"] == []


async def test_the_reconciler_leaves_young_intents_alone(
    reconciler: Reconciler, coordinator: FakeCoordinator, alice: Customer
) -> None:
    coordinator.lose_put_answers = 1
    answer = await alice.post(f"/v1/projects/{alice.project_id}/groups", {"name": "a", **SLA})
    problem(answer, 503, "coordinator_unavailable")
    reconciler.age_s = 60
    await reconciler.run()
    assert coordinator.puts == 1


async def test_the_reconciler_finishes_deletions(
    reconciler: Reconciler, coordinator: FakeCoordinator, alice: Customer, owner: psycopg.Connection
) -> None:
    group = await alice.create_group()
    coordinator.down = True
    await alice.request("DELETE", f"/v1/groups/{group['id']}")
    coordinator.down = False
    await reconciler.run()
    assert coordinator.groups == {}
    assert owner.execute("SELECT status FROM groups").fetchone() == ("deleted",)


@pytest.mark.parametrize("status", [200, 404, 500])
async def test_an_odd_answer_delays_its_own_group_alone(
    reconciler: Reconciler, coordinator: FakeCoordinator, alice: Customer, owner: psycopg.Connection, status: int
) -> None:
    groups = [await alice.create_group(name) for name in "abc"]
    coordinator.down = True
    for group in groups:
        await alice.request("DELETE", f"/v1/groups/{group['id']}")
    coordinator.down = False
    coordinator.odd = {uuid.UUID(groups[0]["id"]): status}
    owner.execute("UPDATE groups SET status = 'provisioning', delete_requested_at = NULL WHERE name = 'a'")
    await reconciler.run()
    found = dict(owner.execute("SELECT name, status FROM groups ORDER BY name").fetchall())
    assert found == {"a": "provisioning", "b": "deleted", "c": "deleted"}
    coordinator.odd.clear()
    await reconciler.run()
    assert owner.execute("SELECT status FROM groups WHERE name = 'a'").fetchone() == ("active",)


@pytest.mark.parametrize("status", [200, 500])
async def test_events_go_on_beside_a_group_with_an_odd_answer(
    follower: Follower, coordinator: FakeCoordinator, alice: Customer, owner: psycopg.Connection, status: int
) -> None:
    odd, sound = [await alice.create_group(name) for name in "ab"]
    await follower.step(0)
    coordinator.odd = {uuid.UUID(odd["id"]): status}
    for group in (odd, sound):
        coordinator.fail_over(uuid.UUID(group["id"]))
    assert await follower.step(0) == 2

    def epochs() -> list[int]:
        return [row[0] for row in owner.execute("SELECT epoch FROM groups ORDER BY name").fetchall()]

    assert (epochs(), applied(owner)) == ([1, 2], 4)
    assert await follower.step(0) == 0
    coordinator.odd.clear()
    await Follower(follower.engine, follower.coordinator).step(0)
    assert epochs() == [2, 2], "another process asks again without another event"
    assert owner.execute("SELECT count(*) FROM groups WHERE unseen").fetchone() == (0,)


async def test_a_coordinator_that_goes_away_between_events_and_groups_is_waited_for(
    follower: Follower, coordinator: FakeCoordinator, alice: Customer, owner: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("quorate_api.limits.RETRY_DELAY_S_MAX", 0.1)
    groups = [await alice.create_group(name) for name in "ab"]
    for group in groups:
        coordinator.fail_over(uuid.UUID(group["id"]))
    coordinator.down_after_events = True
    task = asyncio.create_task(keep_running("events", follower.run))
    try:
        async with asyncio.timeout(20):
            while not coordinator.down:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.3)
            assert not task.done(), "the worker does not end"
            coordinator.down_after_events = coordinator.down = False
            while applied(owner) < 4:
                await asyncio.sleep(0.05)
    finally:
        await end_task(task)
    assert owner.execute("SELECT DISTINCT epoch FROM groups").fetchall() == [(2,)]


async def test_a_resynchronisation_leaves_out_a_group_that_is_odd(
    follower: Follower, coordinator: FakeCoordinator, alice: Customer, owner: psycopg.Connection
) -> None:
    odd, sound = [await alice.create_group(name) for name in "ab"]
    coordinator.odd = {uuid.UUID(odd["id"]): 200}
    coordinator.fail_over(uuid.UUID(sound["id"]))
    coordinator.first_event = 3
    await follower.step(0)
    assert owner.execute("SELECT epoch FROM groups WHERE name = 'b'").fetchone() == (2,)
    coordinator.fail_over(uuid.UUID(odd["id"]))
    coordinator.odd.clear()
    while await follower.step(0):
        pass
    found = owner.execute("SELECT epoch, unseen FROM groups WHERE name = 'a'").fetchone()
    assert found == (2, False), "it is asked for"


async def test_the_sweep(reconciler: Reconciler, alice: Customer, owner: psycopg.Connection) -> None:
    await alice.post("/v1/projects", {"name": "a"}, new_key())
    owner.execute("UPDATE idempotency_keys SET created_at = now() - interval '25 hours'")
    owner.execute("UPDATE sessions SET expires_at = now() - interval '1 minute'")
    problem(await alice.request("GET", "/v1/me"), 401, "session_expired")
    await reconciler.run()
    assert owner.execute("SELECT count(*) FROM sessions").fetchone() == (0,)
    assert owner.execute("SELECT count(*) FROM idempotency_keys").fetchone() == (0,)


# --- The close of a month. Every group is moved into the past month, which is then closed.


def last_month() -> tuple[datetime, datetime]:
    end = datetime.now(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return (end - timedelta(days=1)).replace(day=1), end


async def used_last_month(
    customer: Customer, bus: Redis, worker_engine: AsyncEngine, owner: psycopg.Connection, seconds: int = 120
) -> ReplicaLog:
    """A group admitted two minutes before the month's end, with traffic in both."""
    _, end = last_month()
    group = await customer.create_group(f"g{uuid.uuid4().hex[:6]}")
    begun = end - timedelta(seconds=seconds)
    owner.execute("UPDATE groups SET created_at = %s, active_at = %s WHERE id = %s", (begun, begun, group["id"]))
    log = ReplicaLog(group["id"], int(begun.timestamp())).run(seconds, seed=1)
    await ingested(log, bus, worker_engine)
    return log


@pytest.fixture(autouse=True)
def keep_last_month(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows of last month count, as they do for servers that send them in time."""
    monkeypatch.setattr(limits, "USAGE_DAYS_KEPT", 70)


async def ingested(log: ReplicaLog, bus: Redis, worker_engine: AsyncEngine) -> None:
    ingest = Ingest(bus, worker_engine, "w1")
    await ingest.prepare()
    for report in log.reports:
        await bus.xadd("quorate:usage", encoded(report))
    while await ingest.step(10):
        pass


async def documents(customer: Customer) -> list[dict[str, Any]]:
    heads = (await customer.get("/v1/invoices"))["items"]
    return [await customer.get(f"/v1/invoices/{head['id']}") for head in reversed(heads)]


async def test_closing_a_month(
    alice: Customer, bob: Customer, bus: Redis, worker_engine: AsyncEngine, owner: psycopg.Connection
) -> None:
    log = await used_last_month(alice, bus, worker_engine, owner)
    assert await close_months(worker_engine, UNTAXED, datetime.now(UTC), delay_s=0) == 1
    (invoice,) = await documents(alice)
    start, end = last_month()
    number = f"INV-{datetime.now(UTC):%Y}-000001"
    assert (invoice["number"], invoice["status"], invoice["kind"]) == (number, "issued", "invoice")
    assert datetime.fromisoformat(invoice["period_start"]) == start
    assert datetime.fromisoformat(invoice["period_end"]) == end
    lines = {line["kind"]: line for line in invoice["lines"]}
    assert lines["appends"]["quantity"] == log.committed
    assert lines["reservation"]["quantity"] == 120
    for line in invoice["lines"]:
        exact = line["quantity"] * line["unit_price_micros"] / line["price_quantity"]
        assert abs(line["amount_micros"] - exact) <= 0.5
    assert invoice["total_micros"] == sum(line["amount_micros"] for line in invoice["lines"]) > 0
    assert await documents(bob) == [], "who owes nothing gets no invoice"
    books = owner.execute("SELECT account, amount_micros FROM ledger_entries").fetchall()
    assert dict(books)["accounts_receivable"] == payable(invoice["total_micros"])
    assert sum(amount for _, amount in books) == 0


async def test_closing_again_changes_nothing(
    alice: Customer, bus: Redis, worker_engine: AsyncEngine, owner: psycopg.Connection
) -> None:
    await used_last_month(alice, bus, worker_engine, owner)
    now = datetime.now(UTC)
    made = await asyncio.gather(*(close_months(worker_engine, UNTAXED, now, delay_s=0) for _ in range(3)))
    assert sorted(made) == [0, 0, 1]
    assert await close_months(worker_engine, UNTAXED, now, delay_s=0) == 0
    assert len(await documents(alice)) == 1


async def test_telemetry_on_its_way_is_waited_for(
    alice: Customer, bus: Redis, worker_engine: AsyncEngine, owner: psycopg.Connection
) -> None:
    await used_last_month(alice, bus, worker_engine, owner)
    _, end = last_month()
    assert await close_months(worker_engine, UNTAXED, end + timedelta(hours=5, minutes=59)) == 0
    assert await close_months(worker_engine, UNTAXED, end + timedelta(hours=6, minutes=1)) == 1


async def test_late_telemetry_is_billed_once_in_the_next_month(
    alice: Customer, bus: Redis, worker_engine: AsyncEngine, owner: psycopg.Connection
) -> None:
    log = await used_last_month(alice, bus, worker_engine, owner)
    early = log.committed
    await close_months(worker_engine, UNTAXED, datetime.now(UTC), delay_s=0)
    log.now_s -= 60  # the last minute of the old month again, with more entries
    log.second(1_000)
    await ingested(log, bus, worker_engine)
    current = await alice.get("/v1/invoices/current")
    assert {line["kind"]: line["quantity"] for line in current["lines"]}["appends"] == 1_000
    _, end = last_month()
    next_end = (end + timedelta(days=31)).replace(day=1)
    await close_months(worker_engine, UNTAXED, next_end, delay_s=0)
    invoices = [document for document in await documents(alice) if document["kind"] == "invoice"]
    appends = [line["quantity"] for invoice in invoices for line in invoice["lines"] if line["kind"] == "appends"]
    assert appends == [early, 1_000]
    reserved = sum(
        line["quantity"] for invoice in invoices for line in invoice["lines"] if line["kind"] == "reservation"
    )
    assert reserved == 120 + int((next_end - end).total_seconds())


async def test_credits_come_by_themselves(
    alice: Customer, bus: Redis, worker_engine: AsyncEngine, owner: psycopg.Connection
) -> None:
    """Half of the time has no telemetry although the log grew: availability is missed."""
    group = await alice.create_group()
    _, end = last_month()
    begun = end - timedelta(seconds=240)
    admitted = begun - timedelta(seconds=1)  # the first second is not judged
    owner.execute("UPDATE groups SET created_at = %s, active_at = %s", (admitted, admitted))
    log = ReplicaLog(group["id"], int(begun.timestamp())).run(240, seed=1)
    log.reports = [report for report in log.reports if report["records"][0]["window_start_s"] >= end.timestamp() - 120]
    await ingested(log, bus, worker_engine)
    assert await close_months(worker_engine, UNTAXED, datetime.now(UTC), delay_s=0) == 2
    invoice, note = await documents(alice)
    number = f"CN-{datetime.now(UTC):%Y}-000001"
    assert (note["kind"], note["number"], note["corrects_invoice_id"]) == ("credit_note", number, invoice["id"])
    assert -invoice["total_micros"] <= note["total_micros"] < 0
    assert note["total_micros"] == -invoice["total_micros"], "three clauses missed by half: the whole fee, not more"
    assert "50.0000 % instead of 99.95 %" in note["lines"][0]["description"]
    appends = next(line for line in invoice["lines"] if line["kind"] == "appends")
    assert appends["quantity"] == log.committed, "usage is exact though telemetry was lost"
    report = await alice.get(f"/v1/groups/{group['id']}/sla", params={"month": f"{begun:%Y-%m}"})
    assert report["minutes_counted"] == 4
    assert [clause["bad_minutes"] for clause in report["clauses"]] == [2, 2, 2, 0, 0]
    assert report["credit_percent"] == 100


def numbers(owner: psycopg.Connection, kind: str) -> list[str]:
    found = owner.execute("SELECT number FROM invoices WHERE kind = %s ORDER BY sequence", (kind,)).fetchall()
    return [row[0] for row in found]


async def test_numbers_have_no_gaps_and_are_unique_for_the_seller(
    alice: Customer, bob: Customer, bus: Redis, worker_engine: AsyncEngine, owner: psycopg.Connection
) -> None:
    """Several workers close the months of two organizations at once."""
    for customer in (alice, bob):
        await used_last_month(customer, bus, worker_engine, owner)
    earlier = "{0} = {0} - interval '100 days'"
    owner.execute(f"UPDATE groups SET {earlier.format('active_at')}, {earlier.format('created_at')}")
    now = datetime.now(UTC)
    await asyncio.gather(*(close_months(worker_engine, UNTAXED, now, delay_s=0) for _ in range(3)))
    for kind, prefix in (("invoice", "INV"), ("credit_note", "CN")):
        found = numbers(owner, kind)
        assert found == [f"{prefix}-{now:%Y}-{number:06d}" for number in range(1, len(found) + 1)]
        assert len(found) >= 6, "no telemetry in three or more months of two organizations"
    of_both = [{document["number"] for document in await documents(customer)} for customer in (alice, bob)]
    assert of_both[0].isdisjoint(of_both[1])


async def test_a_close_that_fails_takes_its_numbers_back(
    alice: Customer, bob: Customer, bus: Redis, worker_engine: AsyncEngine, owner: psycopg.Connection
) -> None:
    for customer in (alice, bob):
        await used_last_month(customer, bus, worker_engine, owner)
    first = min(alice.organization_id, bob.organization_id)
    owner.execute(f"ALTER TABLE invoices ADD CONSTRAINT no CHECK (organization_id <> '{first}')")
    assert await close_months(worker_engine, UNTAXED, datetime.now(UTC), delay_s=0) == 1, "the other one's"
    owner.execute("ALTER TABLE invoices DROP CONSTRAINT no")
    assert await close_months(worker_engine, UNTAXED, datetime.now(UTC), delay_s=0) == 1
    assert numbers(owner, "invoice") == [f"INV-{datetime.now(UTC):%Y}-00000{number}" for number in (1, 2)]


async def test_a_close_that_takes_too_long_does_not_delay_the_others(
    alice: Customer,
    bob: Customer,
    bus: Redis,
    worker_engine: AsyncEngine,
    owner: psycopg.Connection,
) -> None:
    for customer in (alice, bob):
        await used_last_month(customer, bus, worker_engine, owner)
    first = min(alice.organization_id, bob.organization_id)
    owner.execute(
        "CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f" IF NEW.organization_id = '{first}' THEN RAISE query_canceled; END IF; RETURN NEW; END $$"
    )
    owner.execute("CREATE TRIGGER slow BEFORE INSERT ON invoices FOR EACH ROW EXECUTE FUNCTION dawdle()")
    assert await close_months(worker_engine, UNTAXED, datetime.now(UTC), delay_s=0) == 1, "the other one's"
    owner.execute("DROP TRIGGER slow ON invoices")
    assert await close_months(worker_engine, UNTAXED, datetime.now(UTC), delay_s=0) == 1


async def test_the_open_invoice_is_of_this_month_also_before_the_last_one_is_closed(
    alice: Customer, bus: Redis, worker_engine: AsyncEngine, owner: psycopg.Connection
) -> None:
    log = await used_last_month(alice, bus, worker_engine, owner)
    before = log.committed
    log.run(120, seed=5)  # this month's first two minutes
    await ingested(log, bus, worker_engine)
    _, end = last_month()

    async def quantities() -> dict[str, int]:
        return {line["kind"]: line["quantity"] for line in (await alice.get("/v1/invoices/current"))["lines"]}

    unclosed, asked_at = await quantities(), datetime.now(UTC)
    assert unclosed["appends"] == log.committed - before
    assert abs(unclosed["reservation"] - (asked_at - end).total_seconds()) <= 2
    await close_months(worker_engine, UNTAXED, datetime.now(UTC), delay_s=0)
    (invoice,) = await documents(alice)
    assert {line["kind"]: line["quantity"] for line in invoice["lines"]}["appends"] == before
    closed = await quantities()
    assert {**closed, "reservation": 0} == {**unclosed, "reservation": 0}, "the close changes nothing of it"


async def test_a_month_is_billed_by_the_prices_of_its_begin(
    alice: Customer, bus: Redis, worker_engine: AsyncEngine, owner: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list changes with this month, and the last one is closed after that."""
    await used_last_month(alice, bus, worker_engine, owner)
    _, end = last_month()
    old = prices.LISTS[-1]
    dearer = tuple(replace(price, unit_price_micros=7 * price.unit_price_micros) for price in old.usage)
    monkeypatch.setattr(prices, "LISTS", (old, replace(old, valid_from=end, usage=dearer)))
    await close_months(worker_engine, UNTAXED, datetime.now(UTC), delay_s=0)
    (invoice,) = await documents(alice)
    billed = {line["kind"]: line["unit_price_micros"] for line in invoice["lines"]}
    assert billed["appends"] == old.usage[0].unit_price_micros
    quote = await alice.create_group()
    assert quote["price"]["usage"][0]["unit_price_micros"] == dearer[0].unit_price_micros


async def test_a_deleted_group_is_owed_for_until_then(
    alice: Customer, bus: Redis, worker_engine: AsyncEngine, owner: psycopg.Connection
) -> None:
    log = await used_last_month(alice, bus, worker_engine, owner)
    await alice.request("DELETE", f"/v1/groups/{log.group_id}")
    _, end = last_month()
    owner.execute("UPDATE groups SET delete_requested_at = %s, deleted_at = %s", (end - timedelta(seconds=30), end))
    await close_months(worker_engine, UNTAXED, datetime.now(UTC), delay_s=0)
    invoice = (await documents(alice))[0]
    assert next(line for line in invoice["lines"] if line["kind"] == "reservation")["quantity"] == 90
    current = await alice.get("/v1/invoices/current")
    assert current["lines"] == []


async def test_the_open_invoice_grows_by_the_second(alice: Customer) -> None:
    await alice.create_group()
    first = await alice.get("/v1/invoices/current")
    deadline = time.monotonic() + 5
    while (second := await alice.get("/v1/invoices/current"))["total_micros"] <= first["total_micros"]:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.1)
    assert second["status"] == "open"
    assert second["number"] is None


async def test_a_months_report_does_not_hold_up_other_requests(alice: Customer, owner: psycopg.Connection) -> None:
    group = await alice.create_group()
    start, end = last_month()
    owner.execute("UPDATE groups SET created_at = %s, active_at = %s", (start, start))
    owner.execute(
        "SELECT ensure_usage_day(day) FROM generate_series(%s::bigint, %s::bigint, 86400) AS day",
        (start.timestamp(), end.timestamp() - 60),
    )
    owner.execute(
        "INSERT INTO usage_windows SELECT organization_id, id, server, 'i', 1, minute, 'head', 0, 0, 0, 0, 1, 0, 0, 0,"
        " 0, 0, 60000, 0, 0, 1, '{\"200\": 1}', 0, 0, 0, 0 FROM groups, generate_series(1, 3) AS server,"
        " generate_series(%s::bigint, %s::bigint, 60) AS minute",
        (start.timestamp(), end.timestamp() - 60),
    )
    longest_s, began = 0.0, time.monotonic()
    report = asyncio.create_task(alice.get(f"/v1/groups/{group['id']}/sla?month={start:%Y-%m}"))
    while not report.done():
        looked = time.monotonic()
        await asyncio.sleep(0.001)
        longest_s = max(longest_s, time.monotonic() - looked)
    took_s = time.monotonic() - began
    assert (await report)["minutes_counted"] > 10_000
    assert longest_s < took_s / 3, (longest_s, took_s)
