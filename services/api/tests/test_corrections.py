"""Corrections: entered by operators, seen by customers, in every figure; and minutes that are declared bad."""

import random
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import psycopg
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api.corrections.correction import BadSpan
from quorate_api.documents.document import DocumentLine
from quorate_api.documents.quantities import quantity_text
from quorate_api.outside.verdict import EVERYTHING_REACHED
from quorate_api.sla.declared import declared
from quorate_api.sla.minutes import Judged, Minute, judge
from quorate_api.sla.tally import tally
from quorate_api.telemetry.windows import WINDOW_S, Window
from support.corrections import LastMonth, correct, corrected
from support.customer import Customer, new_key, problem
from support.promises import promise
from support.usage import Usage

PROMISE = promise("persistent")


@pytest.fixture
async def month(alice: Customer, worker_engine: AsyncEngine, owner: psycopg.Connection) -> LastMonth:
    group_id: str = (await alice.create_group())["id"]
    return await LastMonth.of(alice, Usage(worker_engine, {group_id: alice}), owner, group_id)


async def used_today(month: LastMonth, committed: int, reads: int = 0) -> str:
    """Use in the minute that runs, in a month before which all are closed. Returns the day."""
    await month.close()
    now = datetime.now(UTC)
    start_s = int(now.timestamp()) // WINDOW_S * WINDOW_S
    await month.usage.ingest(
        [Window(month.group_id, 1, "a", 1, start_s, "head", committed_entries=committed, read_entries=reads)]
    )
    return f"{datetime.fromtimestamp(start_s, UTC):%Y-%m-%d}"


async def test_a_correction_is_in_every_figure_of_the_open_month(
    operator: httpx2.AsyncClient, alice: Customer, month: LastMonth
) -> None:
    day = await used_today(month, 3_000_000, reads=1_000_000)
    before = await alice.get("/v1/invoices/current")
    entered = await corrected(operator, month.group_id, kind="appends", quantity=-1_000_000, day=day)
    await corrected(operator, month.group_id, kind="reads", quantity=500_000, day=day, reason="some were lost")
    assert entered["author"].startswith("operator ")
    usage = await alice.get(
        f"/v1/groups/{month.group_id}/usage",
        params={"from": f"{day}T00:00:00Z", "to": (datetime.now(UTC) + timedelta(minutes=1)).isoformat()},
    )
    assert (usage["committed_entries"], usage["read_entries"]) == (2_000_000, 1_500_000)
    assert sum(minute["committed_entries"] for minute in usage["minutes"]) == 3_000_000, "telemetry stays as it is"
    assert [(each["quantity"], each["reason"]) for each in usage["corrections"]] == [
        (-1_000_000, "it was counted twice"), (500_000, "some were lost"),
    ]  # fmt: skip
    after = await alice.get("/v1/invoices/current")
    added = [line for line in after["lines"] if line["correction_id"] is not None]
    assert [(line["kind"], line["description"], line["quantity"], line["amount_micros"]) for line in added] == [
        ("appends", "Correction: it was counted twice", -1_000_000, -150_000),
        ("reads", "Correction: some were lost", 500_000, 10_000),
    ]
    spend = await alice.get("/v1/spend")
    usage_micros = {line["kind"]: line["amount_micros"] for line in before["lines"] if line["kind"] != "reservation"}
    assert spend["by_kind"]["appends"] == usage_micros["appends"] - 150_000
    assert spend["by_kind"]["reads"] == usage_micros["reads"] + 10_000
    days = (await alice.get("/v1/spend/days"))["days"]
    assert sum(each["by_kind"]["appends"] for each in days) == spend["by_kind"]["appends"]
    csv = await alice.request("GET", "/v1/invoices/current/lines.csv")
    assert "Correction: it was counted twice,-1000000,entry,1000000,0.150000,-0.150000" in csv.text


async def test_it_is_entered_once_and_never_changes(
    operator: httpx2.AsyncClient, month: LastMonth, owner: psycopg.Connection
) -> None:
    path = f"/v1/operator/groups/{month.group_id}/corrections"
    body = {"kind": "appends", "quantity": 5, "day": month.day, "reason": "lost on the way"}
    key = {"Idempotency-Key": new_key()}
    first = await operator.post(path, json=body, headers=key)
    again = await operator.post(path, json=body, headers=key)
    assert first.status_code == 201, first.text
    assert again.json() == first.json()
    (listed,) = (await operator.get(path)).json()["items"]
    assert listed == first.json()
    problem(await operator.post(path, json=body), 422, "validation_failed")
    for statement in ("UPDATE corrections SET quantity = 6", "DELETE FROM corrections"):
        with pytest.raises(psycopg.errors.RaiseException, match="append-only"):
            owner.execute(statement)


async def test_what_is_refused(operator: httpx2.AsyncClient, month: LastMonth) -> None:
    today, tomorrow = (f"{datetime.now(UTC) + timedelta(days=days):%Y-%m-%d}" for days in (0, 1))
    before = f"{month.began - timedelta(days=1):%Y-%m-%d}"
    refused: list[tuple[dict[str, Any], str]] = [
        ({"kind": "appends", "quantity": 0, "day": today}, "body"),
        ({"kind": "appends", "quantity": 1}, "body"),
        ({"kind": "appends", "quantity": 1, "day": today, "start": month.at(0), "end": month.at(1)}, "body"),
        ({"kind": "sla_minutes", "start": month.at(0), "end": month.at(1), "quantity": 1, "day": today}, "body"),
        ({"kind": "reservation", "quantity": 1, "day": today}, "kind"),
        ({"kind": "appends", "quantity": 10**16, "day": today}, "quantity"),
        ({"kind": "appends", "quantity": 1, "day": tomorrow}, "day"),
        ({"kind": "appends", "quantity": 1, "day": before}, "day"),
        ({"kind": "appends", "quantity": 1, "day": "soon"}, "day"),
        ({"kind": "appends", "quantity": 1, "day": today, "reason": " "}, "reason"),
        ({"kind": "appends", "quantity": -1, "day": month.day}, "quantity"),
        ({"kind": "sla_minutes", "start": month.at(1), "end": month.at(1)}, "start"),
        ({"kind": "sla_minutes", "start": month.at(-9), "end": month.at(0)}, "start"),
        ({"kind": "sla_minutes", "start": month.at(0), "end": "2999-01-01T00:00:00Z"}, "end"),
        ({"kind": "sla_minutes", "start": "2199-01-01T00:00:00Z", "end": "2199-01-02T00:00:00Z"}, "end"),
        ({"kind": "sla_minutes", "start": month.at(0)[:-6], "end": month.at(1)}, "start"),
        ({"kind": "sla_minutes", "start": month.at(0), "end": month.at(0).replace(":00+", ":30+")}, "end"),
    ]
    for asked, field in refused:
        errors = problem(await correct(operator, month.group_id, **asked), 422, "validation_failed")["errors"]
        assert [error["field"].split(".")[0] for error in errors] == [field], (asked, errors)
    problem(await correct(operator, str(uuid.uuid4()), kind="appends", quantity=1, day=today), 404, "not_found")
    problem(await operator.get(f"/v1/operator/groups/{uuid.uuid4()}/corrections"), 404, "not_found")
    assert (await operator.get(f"/v1/operator/groups/{month.group_id}/corrections")).json()["items"] == []


async def test_use_is_taken_off_once_the_month_before_is_closed(operator: httpx2.AsyncClient, month: LastMonth) -> None:
    """Late telemetry could move the use of the open month to the one before, as long as that is open."""
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    body = problem(
        await correct(operator, month.group_id, kind="appends", quantity=-1, day=today), 409, "month_not_closed"
    )
    assert body["retryable"]
    day = await used_today(month, 100)
    detail = problem(
        await correct(operator, month.group_id, kind="appends", quantity=-101, day=day), 422, "validation_failed"
    )["detail"]
    assert "has 100 of the group's appends" in detail
    await corrected(operator, month.group_id, kind="appends", quantity=-60, day=day)
    problem(await correct(operator, month.group_id, kind="appends", quantity=-41, day=day), 422, "validation_failed")
    await corrected(operator, month.group_id, kind="appends", quantity=10, day=day)
    await corrected(operator, month.group_id, kind="appends", quantity=-50, day=day)


async def test_nobody_else_sees_them(
    operator: httpx2.AsyncClient, alice: Customer, bob: Customer, month: LastMonth
) -> None:
    await corrected(operator, month.group_id, kind="sla_minutes", start=month.at(0), end=month.at(5), reason="secret")
    problem(await bob.request("GET", f"/v1/groups/{month.group_id}/sla"), 404, "not_found")
    theirs = await bob.create_group()
    assert (await bob.get(f"/v1/groups/{theirs['id']}/sla"))["corrections"] == []
    report = await alice.get(f"/v1/groups/{month.group_id}/sla", params={"month": month.name})
    assert [each["reason"] for each in report["corrections"]] == ["secret"]


@pytest.mark.parametrize("is_judged", [True, False])
async def test_minutes_that_are_declared_bad(
    operator: httpx2.AsyncClient, alice: Customer, month: LastMonth, is_judged: bool
) -> None:
    windows = month.minutes(range(120))
    windows[3] = month.window(3, 40, throttled_within_sla_entries=7, within_sla_entries=100)
    await month.usage.ingest(windows)
    if is_judged:
        await month.judge()
    await corrected(
        operator, month.group_id, kind="sla_minutes", start=month.at(3), end=month.at(6), reason="A switch was down."
    )
    query = {"params": {"month": month.name}}
    report = await alice.get(f"/v1/groups/{month.group_id}/sla", **query)
    assert report["minutes_counted"] == 120
    assert [(clause["good_minutes"], clause["bad_minutes"]) for clause in report["clauses"]] == [(117, 3)] * 3 + [
        (120, 0)
    ] * 2, "nothing was lost, and nothing in another order"
    availability = report["clauses"][0]
    first_ms = 1_000  # the first second of a group is not judged
    assert (availability["active_ms"], availability["elapsed_ms"]) == (117 * 60_000 - first_ms, 120 * 60_000 - first_ms)
    assert {incident["reason"] for incident in report["incidents"]} == {"Declared bad: A switch was down."}
    minutes = (await alice.get(f"/v1/groups/{month.group_id}/sla/bad-minutes", **query))["items"]
    assert [(each["declared"], each["active_ms"], len(each["missed"])) for each in minutes] == [
        ("A switch was down.", 0, 3)
    ] * 3
    assert minutes[0]["throttled_within_sla_entries"] == 7, "what was measured stays the evidence"


@pytest.mark.parametrize("seed", range(20))
def test_declared_minutes_count_as_if_they_had_been_judged_so(seed: int) -> None:
    """Against the plainest means: every minute is judged, and the declared ones are exchanged one by one."""
    rng = random.Random(seed)
    windows = [
        Window(
            "g", 1, "a", 1, minute * WINDOW_S, "head", active_ms=rng.choice((60_000, 60_000, 31_000)),
            throttled_within_sla_entries=rng.choice((0, 0, 3)),
        )
        for minute in range(60)
        if rng.random() < 0.9
    ]  # fmt: skip
    span_ms = (rng.randrange(600_000), rng.randrange(2_000_000, 3_600_000))
    begins = [rng.randrange(60) * WINDOW_S for _ in range(rng.randrange(4))]
    spans = [
        BadSpan(begin_s, begin_s + rng.randrange(1, 20) * WINDOW_S, f"reason {number}")
        for number, begin_s in enumerate(begins)
    ]
    judged = judge(windows, *span_ms, PROMISE.latency_us_at, EVERYTHING_REACHED)
    bad = [minute for minute in judged.minutes if not minute.is_good]

    def exchanged(minute: Minute) -> Minute:
        for span in spans:
            if span.start_s <= minute.start_s < span.end_s:
                return Minute(
                    minute.start_s, minute.elapsed_ms, 0, minute.measured, minute.throttled_within_sla_entries,
                    minute.within_sla_entries, minute.p99_us, minute.target_us, declared=span.reason,
                )  # fmt: skip
        return minute

    minutes = [exchanged(minute) for minute in judged.minutes]
    expected = tally(Judged(minutes, judged.latency_us))
    total, found = declared(tally(judged), bad, spans, span_ms, PROMISE)
    assert total == expected
    assert found == [minute for minute in minutes if not minute.is_good]


def test_quantities_that_are_taken_off() -> None:
    line = DocumentLine(uuid.UUID(int=1), "g", "appends", "", -1_234, "entry", 1_000_000, 1, -1)
    assert quantity_text(line) == "−1,234 entries"
