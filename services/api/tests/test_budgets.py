"""Budgets: set, read, deleted; thresholds that fire once a month, whoever evaluates them."""

import asyncio
import uuid
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.budgets.evaluation import Budget, Totals, evaluate, is_spent
from quorate_api.worker import budgets as worker
from quorate_api.worker.budgets import evaluate_budgets
from support.customer import Customer, bearer, problem

NOW = datetime(2026, 11, 25, tzinfo=UTC)


def budget(actual: tuple[int, ...] = (50, 80, 100), forecast: tuple[int, ...] = (100,)) -> Budget:
    return Budget(uuid.UUID(int=1), uuid.UUID(int=2), None, 1_000, actual, forecast)


def reached(spent: int, forecast: int, fired: tuple[tuple[str, int], ...] = ()) -> list[tuple[str, int]]:
    found = evaluate(budget(), fired, Totals(spent, forecast), NOW)
    assert {alert.month for alert in found} <= {"2026-11"}
    return [(alert.kind, alert.threshold_percent) for alert in found]


def test_a_threshold_is_reached_exactly_at_its_share() -> None:
    assert reached(499, 999) == []
    assert reached(500, 999) == [("actual", 50)]
    assert reached(500, 1_000) == [("actual", 50), ("forecast", 100)]
    assert reached(1_000, 1_000, (("actual", 50), ("forecast", 100))) == [("actual", 80), ("actual", 100)]


@given(st.lists(st.tuples(st.integers(0, 2_000), st.integers(0, 2_000)), max_size=20))
def test_each_threshold_fires_at_most_once(figures: list[tuple[int, int]]) -> None:
    fired: set[tuple[str, int]] = set()
    for spent, forecast in figures:
        new = reached(spent, forecast, tuple(fired))
        assert not fired & set(new)
        fired |= set(new)
    assert is_spent(budget(), fired) == (len(fired) == 4)


# --- Over the API


async def put(customer: Customer, **body: Any) -> dict[str, Any]:
    answer = await customer.request("PUT", "/v1/budgets", json={"monthly_micros": 1_000_000, **body})
    assert answer.status_code == 200, answer.text
    return {**answer.json(), "etag": answer.headers["etag"]}


async def test_a_budget_is_set_read_changed_and_deleted(alice: Customer) -> None:
    made = await put(alice)
    assert (made["project_id"], made["action"], made["alerts"]) == (None, "alert", [])
    assert (made["thresholds_percent"], made["forecast_thresholds_percent"]) == ([50, 80, 100], [100])
    of_project = await put(alice, project_id=alice.project_id, thresholds_percent=[90, 10])
    assert (of_project["project_name"], of_project["thresholds_percent"]) == ("default", [10, 90])
    again = await put(alice)
    assert again == made, "repeating it changes nothing"
    changed = await put(alice, monthly_micros=2_000_000)
    assert (changed["id"], changed["created_at"]) == (made["id"], made["created_at"])
    assert changed["etag"] != made["etag"]
    listed = (await alice.get("/v1/budgets"))["items"]
    assert [item["id"] for item in listed] == [of_project["id"], made["id"]]
    assert (await alice.get(f"/v1/budgets/{made['id']}"))["monthly_micros"] == 2_000_000
    assert (await alice.request("DELETE", f"/v1/budgets/{made['id']}")).status_code == 204
    problem(await alice.request("GET", f"/v1/budgets/{made['id']}"), 404, "not_found")
    problem(await alice.request("DELETE", f"/v1/budgets/{made['id']}"), 404, "not_found")
    assert (await put(alice))["id"] != made["id"]


async def test_a_change_of_somebody_else_is_not_overwritten(alice: Customer) -> None:
    body = {"monthly_micros": 5}
    answer = await alice.request("PUT", "/v1/budgets", json=body, headers={"If-Match": "*"})
    problem(answer, 412, "precondition_failed")
    first = await put(alice)
    await put(alice, monthly_micros=7)
    for method, path, more in (
        ("PUT", "/v1/budgets", {"json": body}),
        ("DELETE", f"/v1/budgets/{first['id']}", {}),
    ):
        problem(
            await alice.request(method, path, headers={"If-Match": first["etag"]}, **more), 412, "precondition_failed"
        )
    now = await alice.request("GET", f"/v1/budgets/{first['id']}")
    assert now.json()["monthly_micros"] == 7
    headers = {"If-Match": now.headers["etag"]}
    assert (await alice.request("DELETE", f"/v1/budgets/{first['id']}", headers=headers)).status_code == 204


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"monthly_micros": 0}, "monthly_micros"),
        ({"monthly_micros": -1}, "monthly_micros"),
        ({"monthly_micros": limits.BUDGET_MICROS_MAX + 1}, "monthly_micros"),
        ({"monthly_micros": "5"}, "monthly_micros"),
        ({"monthly_micros": 1.5}, "monthly_micros"),
        ({"monthly_micros": None}, "monthly_micros"),
        ({"thresholds_percent": [0]}, "thresholds_percent"),
        ({"thresholds_percent": [limits.BUDGET_THRESHOLD_PERCENT_MAX + 1]}, "thresholds_percent"),
        ({"thresholds_percent": [50, 50]}, "thresholds_percent"),
        ({"thresholds_percent": list(range(1, limits.BUDGET_THRESHOLDS_MAX + 2))}, "thresholds_percent"),
        ({"thresholds_percent": [], "forecast_thresholds_percent": []}, "body"),
        ({"forecast_thresholds_percent": ["100"]}, "forecast_thresholds_percent"),
        ({"action": "delete"}, "action"),
        ({"project_id": "default"}, "project_id"),
        ({"currency": "EUR"}, "currency"),
    ],
)
async def test_fields_at_fault_are_named(alice: Customer, change: dict[str, Any], field: str) -> None:
    answer = await alice.request("PUT", "/v1/budgets", json={"monthly_micros": 1, **change})
    errors = problem(answer, 422, "validation_failed")["errors"]
    assert any(error["field"].startswith(field) for error in errors), errors
    assert (await alice.get("/v1/budgets"))["items"] == []


async def test_another_organizations_project_is_not_found(alice: Customer, bob: Customer) -> None:
    body = {"monthly_micros": 1, "project_id": alice.project_id}
    problem(await bob.request("PUT", "/v1/budgets", json=body), 404, "not_found")


async def test_a_projects_key_sets_its_own_projects_budget(alice: Customer) -> None:
    other = await alice.create_project("other")
    whole, of_other = await put(alice), await put(alice, project_id=other)
    key = bearer(await alice.create_key(scopes=["billing"]))
    own = {"monthly_micros": 1, "project_id": alice.project_id}
    made = await alice.api.put("/v1/budgets", json=own, headers=key)
    assert made.status_code == 200, made.text
    problem(await alice.api.put("/v1/budgets", json={"monthly_micros": 1}, headers=key), 403, "permission_denied")
    body = {"monthly_micros": 1, "project_id": other}
    problem(await alice.api.put("/v1/budgets", json=body, headers=key), 404, "not_found")
    for hidden in (whole, of_other):
        problem(await alice.api.get(f"/v1/budgets/{hidden['id']}", headers=key), 404, "not_found")
        problem(await alice.api.delete(f"/v1/budgets/{hidden['id']}", headers=key), 404, "not_found")
    listed = (await alice.api.get("/v1/budgets", headers=key)).json()["items"]
    assert [item["id"] for item in listed] == [made.json()["id"]]


async def test_a_deleted_projects_budget_ends(alice: Customer) -> None:
    project = await alice.create_project("short")
    made = await put(alice, project_id=project)
    assert (await alice.request("DELETE", f"/v1/projects/{project}")).status_code == 204
    problem(await alice.request("GET", f"/v1/budgets/{made['id']}"), 404, "not_found")


async def test_two_requests_at_once_make_one_budget(alice: Customer) -> None:
    made = await asyncio.gather(*(put(alice, monthly_micros=number) for number in range(1, 6)))
    assert len({each["id"] for each in made}) == 1
    assert len((await alice.get("/v1/budgets"))["items"]) == 1


# --- Alerts


async def spending(customer: Customer, owner: psycopg.Connection, name: str = "orders", hours: int = 1) -> int:
    """A group that has run for some time of this month. Returns what it has cost."""
    group = await customer.create_group(name)
    now = datetime.now(UTC)
    month = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    at = max(month, now - timedelta(hours=hours))
    owner.execute("UPDATE groups SET created_at = %s, active_at = %s WHERE id = %s", (at, at, group["id"]))
    return int((await customer.get("/v1/spend"))["spent_micros"])


async def shown(customer: Customer, made: dict[str, Any]) -> list[tuple[str, int]]:
    items = (await customer.get(f"/v1/budgets/{made['id']}/alerts"))["items"]
    assert items == (await customer.get(f"/v1/budgets/{made['id']}"))["alerts"]
    return sorted((item["kind"], item["threshold_percent"]) for item in items)


async def test_thresholds_fire_once_though_two_workers_evaluate(
    alice: Customer, bob: Customer, worker_engine: AsyncEngine, owner: psycopg.Connection
) -> None:
    spent = await spending(alice, owner)
    assert spent > 0
    made = await put(alice, monthly_micros=spent * 100 // 70)
    large = await put(alice, project_id=alice.project_id, monthly_micros=10**12)
    await put(bob, monthly_micros=1)
    recorded = await asyncio.gather(*(evaluate_budgets(worker_engine) for _ in range(3)))
    assert sum(recorded) == 2
    assert await shown(alice, made) == [("actual", 50), ("forecast", 100)]
    assert await shown(alice, large) == []
    assert await evaluate_budgets(worker_engine) == 0, "a restart repeats nothing"
    (first, *_) = (await alice.get(f"/v1/budgets/{made['id']}"))["alerts"]
    assert first["amount_micros"] > 0
    assert first["monthly_micros"] == made["monthly_micros"]
    lower = await put(alice, monthly_micros=spent)
    assert await evaluate_budgets(worker_engine) == 2
    assert await shown(alice, lower) == [("actual", 50), ("actual", 80), ("actual", 100), ("forecast", 100)]
    next_month = (datetime.now(UTC).replace(day=1) + timedelta(days=32)).replace(day=20)
    assert await evaluate_budgets(worker_engine, next_month) == 4, "the next month begins anew"
    assert Counter(item["month"] for item in (await alice.get(f"/v1/budgets/{made['id']}/alerts"))["items"]) == {
        f"{datetime.now(UTC):%Y-%m}": 4, f"{next_month:%Y-%m}": 4,
    }  # fmt: skip


async def test_a_projects_budget_counts_its_own_groups(
    alice: Customer, worker_engine: AsyncEngine, owner: psycopg.Connection
) -> None:
    spent = await spending(alice, owner)
    other = await alice.create_project("other")
    idle = await put(alice, project_id=other, monthly_micros=1)
    busy = await put(alice, project_id=alice.project_id, monthly_micros=spent, forecast_thresholds_percent=[])
    assert await evaluate_budgets(worker_engine) == 3
    assert await shown(alice, idle) == []
    assert await shown(alice, busy) == [("actual", 50), ("actual", 80), ("actual", 100)]


async def test_every_organization_is_reached_in_batches(
    alice: Customer,
    bob: Customer,
    worker_engine: AsyncEngine,
    owner: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "BUDGET_ORGANIZATIONS_MAX", 1)
    made = {}
    for customer in (alice, bob):
        await spending(customer, owner)
        made[customer.email] = await put(customer, monthly_micros=1)
    assert await evaluate_budgets(worker_engine) == 8
    for customer in (alice, bob):
        assert len(await shown(customer, made[customer.email])) == 4


async def test_one_organizations_error_does_not_delay_the_others(
    alice: Customer,
    bob: Customer,
    worker_engine: AsyncEngine,
    owner: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = worker.forecast

    def broken(account: Any, *more: Any) -> Any:
        assert str(account.groups[0].organization_id) != alice.organization_id, "broken on purpose"
        return whole(account, *more)

    monkeypatch.setattr(worker, "forecast", broken)
    for customer in (alice, bob):
        await spending(customer, owner)
        await put(customer, monthly_micros=1)
    assert await evaluate_budgets(worker_engine) == 4


async def test_an_organization_that_takes_too_long_does_not_delay_the_others(
    alice: Customer, bob: Customer, worker_engine: AsyncEngine, owner: psycopg.Connection
) -> None:
    owner.execute(
        "CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f" IF NEW.organization_id = '{alice.organization_id}' THEN RAISE query_canceled; END IF; RETURN NEW; END $$"
    )
    owner.execute("CREATE TRIGGER slow BEFORE INSERT ON budget_alerts FOR EACH ROW EXECUTE FUNCTION dawdle()")
    for customer in (alice, bob):
        await spending(customer, owner)
        await put(customer, monthly_micros=1)
    assert await evaluate_budgets(worker_engine) == 4
    owner.execute("DROP TRIGGER slow ON budget_alerts")
    assert await evaluate_budgets(worker_engine) == 4, "hers, in the next pass"


async def test_alerts_stay_as_they_are(alice: Customer, worker_engine: AsyncEngine, owner: psycopg.Connection) -> None:
    await spending(alice, owner)
    made = await put(alice, monthly_micros=1)
    await evaluate_budgets(worker_engine)
    for statement in (
        "UPDATE budget_alerts SET amount_micros = 0",
        "DELETE FROM budget_alerts",
        "TRUNCATE budget_alerts",
    ):
        with pytest.raises(psycopg.errors.RaiseException, match="append-only"):
            owner.execute(statement)
    assert (await alice.request("DELETE", f"/v1/budgets/{made['id']}")).status_code == 204
    assert owner.execute("SELECT count(*) FROM budget_alerts").fetchone() == (4,)
    again = await put(alice, monthly_micros=1)
    assert await evaluate_budgets(worker_engine) == 4, "a new budget begins anew"
    page = await alice.get(f"/v1/budgets/{again['id']}/alerts", params={"limit": 3})
    assert len(page["items"]) == 3
    rest = await alice.get(f"/v1/budgets/{again['id']}/alerts", params={"cursor": page["next_cursor"]})
    assert len(rest["items"]) == 1


async def test_no_unknown_action_is_stored(alice: Customer, owner: psycopg.Connection) -> None:
    await put(alice)
    with pytest.raises(psycopg.errors.CheckViolation, match="budgets_action_check"):
        owner.execute("UPDATE budgets SET action = 'delete'")
