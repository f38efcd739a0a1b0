"""Spend over the API: the open invoice's total, its days, its parts, and its export."""

import random
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from psycopg.types.json import Jsonb
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.billing import service as billing
from quorate_api.spend import exposition
from quorate_api.spend import service as spend
from quorate_api.telemetry.windows import DAY_S, WINDOW_S, Window
from quorate_api.worker.month_close import close_months
from quorate_api.worker.rollup import roll_up
from support.customer import SLA, Customer, bearer, problem
from support.issuer import UNTAXED
from support.usage import Usage


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> datetime:
    """The time of all money until the test's end."""
    at = datetime.now(UTC)

    class Stopped(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> "Stopped":
            return cls.fromtimestamp(at.timestamp(), tz)

    for module in (billing, spend):
        monkeypatch.setattr(module, "datetime", Stopped)
    return at


def began(owner: psycopg.Connection, group_id: str, at: datetime) -> None:
    owner.execute("UPDATE groups SET created_at = %s, active_at = %s WHERE id = %s", (at, at, group_id))


def was_resized(owner: psycopg.Connection, customer: Customer, group_id: str, at: datetime, hourly_micros: int) -> None:
    owner.execute(
        "INSERT INTO former_slas VALUES (%s, %s, 1, %s, %s, %s)",
        (customer.organization_id, group_id, Jsonb({**SLA, "min_replicas": None}), hourly_micros, at),
    )


def window(group_id: str, start_s: int, committed: int, reads: int = 0, stored: int = 0) -> Window:
    return Window(
        group_id, 1, "i", 1, start_s // WINDOW_S * WINDOW_S, "head",
        committed_entries=committed, committed_bytes=64 * committed, read_entries=reads, stored_bytes=stored,
    )  # fmt: skip


async def agrees(customer: Customer) -> dict[str, Any]:
    """Check that every figure of the spend says the same. Returns it."""
    found = await customer.get("/v1/spend")
    invoice = await customer.get("/v1/invoices/current")
    assert found["spent_micros"] == invoice["subtotal_micros"]
    assert (found["period_start"], found["period_end"]) == (invoice["period_start"], invoice["period_end"])
    assert sum(found["by_kind"].values()) == found["spent_micros"]
    for name, total in (
        ("spent_micros", found["spent_micros"]),
        ("forecast_micros", found["forecast"]["total_micros"]),
    ):
        assert sum(project[name] for project in found["projects"]) == total
        assert sum(group[name] for group in found["groups"]) + found["other_groups"][name] == total
    forecast = found["forecast"]
    assert found["spent_micros"] <= forecast["total_micros"]
    assert forecast["low_micros"] <= forecast["total_micros"] <= forecast["high_micros"]
    assert sum(forecast["by_kind"].values()) == forecast["total_micros"]
    days = (await customer.get("/v1/spend/days"))["days"]
    assert sum(day["total_micros"] for day in days) == found["spent_micros"]
    assert len(days) == datetime.fromisoformat(found["as_of"]).day
    for kind, amount in found["by_kind"].items():
        assert sum(day["by_kind"][kind] for day in days) == amount
    return dict(found)


@pytest.mark.parametrize("seed", range(4))
async def test_spend_is_the_open_invoice(
    alice: Customer, worker_engine: AsyncEngine, owner: psycopg.Connection, now: datetime, seed: int
) -> None:
    """Random groups, resizes, deletions and use, in this month and the one before; closed, and before that."""
    rng = random.Random(seed)
    groups = [(await alice.create_group(f"g{number}", rate_per_s=rng.randrange(1, 9_999)))["id"] for number in range(4)]
    usage = Usage(worker_engine, dict.fromkeys(groups, alice))
    end_s = int(now.timestamp())
    for number, group in enumerate(groups):
        life_s = rng.randrange(WINDOW_S, 45 * DAY_S)
        began(owner, group, now - timedelta(seconds=life_s))
        if number == 1:
            at = now - timedelta(seconds=rng.randrange(life_s))
            was_resized(owner, alice, group, at, rng.randrange(1 << 30))
        if number == 2:
            gone = now - timedelta(seconds=rng.randrange(life_s))
            owner.execute("UPDATE groups SET delete_requested_at = %s WHERE id = %s", (gone, group))
        committed = 0
        for start_s in sorted(rng.randrange(end_s - life_s, end_s) for _ in range(30)):
            committed += rng.randrange(1 << 30)
            await usage.ingest([window(group, start_s, committed, rng.randrange(1 << 20), rng.randrange(1 << 40))])
    await agrees(alice)
    await roll_up(worker_engine, end_s - rng.randrange(20 * DAY_S))
    before = await agrees(alice)
    await close_months(worker_engine, UNTAXED, now, delay_s=0)
    after = await agrees(alice)
    assert after["spent_micros"] == before["spent_micros"]
    if before["previous"] is not None:
        assert before["previous"]["status"] == "open"
        assert after["previous"]["status"] == "issued"
        closed = await alice.get(f"/v1/invoices/{after['previous']['invoice_id']}")
        assert closed["total_micros"] == after["previous"]["total_micros"] >= before["previous"]["total_micros"]


async def test_late_usage_is_on_the_first_day(
    alice: Customer, worker_engine: AsyncEngine, owner: psycopg.Connection, now: datetime
) -> None:
    group = (await alice.create_group())["id"]
    month = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    start_s = int(month.timestamp())
    began(owner, group, month - timedelta(hours=1))
    usage = Usage(worker_engine, {group: alice})
    await usage.ingest([window(group, start_s - 600, 1_000_000)])
    await close_months(worker_engine, UNTAXED, now, delay_s=0)
    await usage.ingest([window(group, start_s - 300, 3_000_000)])
    assert (await agrees(alice))["by_kind"]["appends"] == 300_000
    assert (await alice.get("/v1/spend/days"))["days"][0]["by_kind"]["appends"] == 300_000
    earlier = (month - timedelta(days=1)).strftime("%Y-%m")
    last = (await alice.get("/v1/spend/days", params={"month": earlier}))["days"][-1]
    assert last["by_kind"]["appends"] == 450_000, "a past day costs what was used on it"


async def test_a_new_organization_spends_nothing(alice: Customer, now: datetime) -> None:
    found = await agrees(alice)
    assert (found["spent_micros"], found["previous"], found["projects"], found["groups"]) == (0, None, [], [])
    assert found["forecast"]["total_micros"] == 0


async def test_past_and_future_months_of_days(alice: Customer, now: datetime) -> None:
    past = await alice.get("/v1/spend/days", params={"month": "2024-02"})
    assert [day["day"] for day in past["days"]] == [f"2024-02-{day:02}" for day in range(1, 30)]
    assert (await alice.get("/v1/spend/days", params={"month": "2099-01"}))["days"] == []


@pytest.mark.parametrize("month", ["2026-13", "26-01", "2026-01-01", "soon"])
async def test_months_that_are_none(alice: Customer, month: str) -> None:
    answer = await alice.request("GET", "/v1/spend/days", params={"month": month})
    errors = problem(answer, 422, "validation_failed")["errors"]
    assert [error["field"] for error in errors] == ["month"]


async def test_groups_behind_the_bound_are_one_sum(
    alice: Customer, monkeypatch: pytest.MonkeyPatch, owner: psycopg.Connection, now: datetime
) -> None:
    monkeypatch.setattr(limits, "SPEND_GROUPS_MAX", 2)
    for number in range(4):
        group = await alice.create_group(f"g{number}", rate_per_s=1_000 * (number + 1))
        began(owner, group["id"], now - timedelta(seconds=30))
    found = await agrees(alice)
    assert [group["group_name"] for group in found["groups"]] == ["g3", "g2"]
    assert found["other_groups"]["groups"] == 2


def parsed(text: str) -> dict[str, dict[tuple[str, ...], float]]:
    """Samples by name, as Prometheus reads them."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text):
        assert (family.type, family.unit) == ("gauge", "micros")
        assert family.documentation
        for sample in family.samples:
            samples = found.setdefault(sample.name, {})
            key = tuple(sample.labels.values())
            assert key not in samples
            samples[key] = sample.value
    return found


async def test_the_export_is_read_by_prometheus(
    alice: Customer, worker_engine: AsyncEngine, owner: psycopg.Connection, now: datetime
) -> None:
    group = (await alice.create_group('quote " and \\ back'))["id"]
    began(owner, group, now - timedelta(hours=1))
    await Usage(worker_engine, {group: alice}).ingest([window(group, int(now.timestamp()) - 600, 5_000_000, 7_000_000)])
    other = await alice.create_project("other")
    for project_id, micros in ((None, 90_000_000), (other, 4_000_000)):
        body = {"project_id": project_id, "monthly_micros": micros}
        assert (await alice.request("PUT", "/v1/budgets", json=body)).status_code == 200
    key = await alice.create_key(scopes=["billing"])
    answer = await alice.api.get("/v1/spend/metrics", headers=bearer(key))
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == exposition.MEDIA_TYPE
    found = parsed(answer.text)
    shown = await alice.get("/v1/spend")
    kinds = {kind: amount for kind, amount in shown["by_kind"].items() if amount}
    assert set(kinds) >= {"reservation", "appends", "reads"}
    assert found["quorate_spend_micros"] == {("default", 'quote " and \\ back', kind): kinds[kind] for kind in kinds}
    assert found["quorate_spend_forecast_micros"] == {(): shown["forecast"]["total_micros"]}
    assert found["quorate_budget_micros"] == {("",): 90_000_000}, "a project's key sees its own project's budget"
    own = (await alice.request("GET", "/v1/spend/metrics")).text
    assert parsed(own)["quorate_budget_micros"] == {("",): 90_000_000, ("other",): 4_000_000}
    problem(await alice.api.get("/v1/spend/metrics"), 401, "not_authenticated")


def test_the_export_is_bounded_and_loses_no_money() -> None:
    spent = {("p", f"g{number}", "appends"): number for number in range(limits.SPEND_SERIES_MAX + 500)}
    text = exposition.render(spent, 1, {})
    series = parsed(text)["quorate_spend_micros"]
    assert len(series) == limits.SPEND_SERIES_MAX + 1
    assert sum(series.values()) == sum(spent.values())
    assert series["", "", "appends"] == sum(range(500))
    assert len(text) < 1 << 20


async def test_nobody_else_sees_it(alice: Customer, bob: Customer, owner: psycopg.Connection, now: datetime) -> None:
    group = (await alice.create_group())["id"]
    began(owner, group, now - timedelta(hours=1))
    assert (await agrees(alice))["spent_micros"] > 0
    assert (await agrees(bob))["spent_micros"] == 0
    assert group not in (await bob.request("GET", "/v1/spend")).text
    assert str(uuid.UUID(alice.project_id)) not in (await bob.request("GET", "/v1/spend")).text
    key = await bob.create_key()
    for path in ("/v1/spend", "/v1/spend/days", "/v1/spend/metrics"):
        problem(await bob.api.get(path, headers=bearer(key)), 403, "permission_denied")
