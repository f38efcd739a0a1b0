"""Breaches of durability and order: logs that were lost, and what operators declare."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api.coordinator.schemas import Event
from quorate_api.corrections.repository import BREACHES
from quorate_api.http.services import Services
from quorate_api.sla.losses import DELETING, LOST, RESET, STATUS, Change, losses
from quorate_api.sla.targets import KEPT
from quorate_api.worker.adjustments import adjust_closed_months
from quorate_api.worker.events import Asked, Follower
from support.corrections import MINUTES, LastMonth, corrected
from support.customer import Customer
from support.issuer import UNTAXED
from support.usage import Usage

AT = datetime(2026, 11, 1, tzinfo=UTC)


@pytest.fixture
async def month(alice: Customer, worker_engine: AsyncEngine, owner: psycopg.Connection) -> LastMonth:
    group_id: str = (await alice.create_group())["id"]
    found = await LastMonth.of(alice, Usage(worker_engine, {group_id: alice}), owner, group_id)
    await found.ingest(found.minutes(range(MINUTES)))
    return found


@pytest.fixture
def follower(worker_engine: AsyncEngine, services: Services) -> Follower:
    return Follower(worker_engine, services.coordinator)


async def told(follower: Follower, month: LastMonth, *changes: tuple[float, str, str | None]) -> None:
    """The coordinator tells of changes: the minute of the group's life, the kind and the status of each."""
    async with follower.engine.connect() as connection:
        after = int((await connection.exec_driver_sql("SELECT applied_seq FROM coordinator_cursor")).scalar_one())
    events = [
        Event.model_validate(
            {
                "seq": after + 1 + number,
                "at": (month.began + timedelta(minutes=minute)).isoformat(),
                "kind": kind,
                "group_id": month.group_id,
                "epoch": 1,
                "status": status,
                "message": "Told.",
            }
        )
        for number, (minute, kind, status) in enumerate(changes)
    ]
    await follower.apply(after, events, Asked())


async def clauses(month: LastMonth) -> dict[str, dict[str, Any]]:
    report = await month.customer.get(f"/v1/groups/{month.group_id}/sla", params={"month": month.name})
    return {each["clause"]: each for each in report["clauses"]}


async def bad_minutes(month: LastMonth) -> list[dict[str, Any]]:
    query = {"month": month.name}
    found = await month.customer.get(f"/v1/groups/{month.group_id}/sla/bad-minutes", params=query)
    return list(found["items"])


async def test_a_lost_log_costs_the_months_fee(month: LastMonth, follower: Follower) -> None:
    assert (await clauses(month))["durability"] | {"error_budget": None} == {
        "clause": "durability", "target": 1.0, "attained": 1.0, "good_minutes": 120, "bad_minutes": 0, "met": True,
        "credit_percent": 0, "error_budget": None, "target_p99_us": None, "p99_us": None, "active_ms": None,
        "elapsed_ms": None,
    }  # fmt: skip
    await told(follower, month, (7.5, STATUS, LOST), (9, RESET, None), (9.1, STATUS, "active"))
    found = await clauses(month)
    durability = found["durability"]
    assert (durability["good_minutes"], durability["bad_minutes"], durability["attained"]) == (119, 1, 0.991666)
    assert (durability["met"], durability["credit_percent"]) == (False, 100)
    budget = durability["error_budget"]
    assert (budget["unit"], budget["allowed"], budget["used"], budget["left"]) == ("minutes", 0, 1, -1)
    assert set(budget["burn_rates"].values()) == {None}
    assert all(found[clause]["bad_minutes"] == 0 for clause in ("availability", "throughput", "latency", "order"))
    (minute,) = await bad_minutes(month)
    reason = "The log was lost: no server has a copy of it."
    assert (minute["missed"], minute["breaches"]) == (["durability"], [{"clause": "durability", "reason": reason}])
    assert datetime.fromisoformat(minute["at"]) == month.began + timedelta(minutes=7)
    report = await month.customer.get(f"/v1/groups/{month.group_id}/sla", params={"month": month.name})
    assert report["credit_percent"] == 100
    assert [(each["clause"], each["minutes"], each["reason"]) for each in report["incidents"]] == [
        ("durability", 1, reason)
    ]
    assert await month.close() == 2
    invoice, note = await month.documents()
    assert note["subtotal_micros"] == -invoice["subtotal_micros"]


async def test_a_log_that_returned_was_not_lost(month: LastMonth, follower: Follower) -> None:
    await told(follower, month, (7.5, STATUS, LOST), (8, STATUS, "paused"), (8.5, STATUS, "active"))
    assert (await clauses(month))["durability"]["met"]
    assert await bad_minutes(month) == []


async def test_a_single_copy_promises_no_durability(
    month: LastMonth, follower: Follower, owner: psycopg.Connection
) -> None:
    owner.execute("UPDATE groups SET sla = sla || '{\"replication_degree\": 1}'")
    await told(follower, month, (7.5, STATUS, LOST), (9, RESET, None))
    assert (await clauses(month))["durability"]["met"]


async def test_a_loss_that_is_told_after_the_months_close_is_credited(month: LastMonth, follower: Follower) -> None:
    assert await month.close() == 1
    assert await adjust_closed_months(month.usage.engine, UNTAXED) == 0
    await told(follower, month, (7.5, STATUS, LOST))
    assert await adjust_closed_months(month.usage.engine, UNTAXED) == 1
    invoice, note = await month.documents()
    assert note["subtotal_micros"] == -invoice["subtotal_micros"]
    assert "durability" in note["lines"][0]["description"]


async def test_operators_declare_breaches(operator: httpx2.AsyncClient, month: LastMonth) -> None:
    reason = "Two readers saw two orders."
    await corrected(operator, month.group_id, kind="sla_order", start=month.at(3), end=month.at(5), reason=reason)
    found = await clauses(month)
    assert (found["order"]["bad_minutes"], found["order"]["credit_percent"]) == (2, 100)
    assert all(each["met"] for name, each in found.items() if name != "order")
    assert [(each["missed"], each["active_ms"], each["declared"]) for each in (await bad_minutes(month))[1:]] == [
        (["order"], 60_000, None)
    ]
    report = await month.customer.get(f"/v1/groups/{month.group_id}/sla", params={"month": month.name})
    assert [(each["breaches"], each["reason"]) for each in report["corrections"]] == [("order", reason)]


def test_each_clause_that_nobody_measures_can_be_declared_breached() -> None:
    assert list(BREACHES.values()) == [clause.name for clause in KEPT]


CHANGES = st.one_of(
    st.sampled_from([LOST, "paused", "active", "degraded", "provisioning", DELETING]).map(
        lambda status: (STATUS, status)
    ),
    st.just((RESET, None)),
)


@given(st.lists(CHANGES, max_size=12))
def test_each_lost_log_counts_once(told: list[tuple[str, str | None]]) -> None:
    """Against the plainest means: of each run of `lost` until something else, what came next decides."""
    changes = [Change(AT + timedelta(seconds=at), kind, status) for at, (kind, status) in enumerate(told)]
    relevant = [change for change in changes if change.status != DELETING]
    starts = [
        at
        for at, change in enumerate(relevant)
        if change.status == LOST and (at == 0 or relevant[at - 1].status != LOST)
    ]
    expected = []
    for start in starts:
        later = [change for change in relevant[start:] if change.status != LOST]
        if not later or later[0].kind == RESET:
            expected.append(relevant[start].at)
    assert losses(changes) == expected
