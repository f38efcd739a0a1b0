"""Closed months that change: credits grow and are never taken back, use is billed once, and nothing is issued twice."""

import asyncio
import random
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import httpx2
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api.adjustments.calculator import further_credits, left_of
from quorate_api.billing.calculator import Line, Missed
from quorate_api.billing.issuer import Issuer
from quorate_api.billing.repository import BillingRepository
from quorate_api.corrections.correction import UsageCorrection
from quorate_api.database.scope import EveryOrganization, Scope
from quorate_api.groups.repository import GroupRepository
from quorate_api.months.repository import MonthRepository
from quorate_api.outside.verdict import EVERYTHING_REACHED
from quorate_api.sla import service as sla
from quorate_api.sla.minutes import Minute
from quorate_api.telemetry.windows import WINDOW_S, merged
from quorate_api.worker.adjustments import adjust_closed_months
from support.corrections import MINUTES, LastMonth, correct, corrected
from support.customer import Customer
from support.issuer import TAXED, UNTAXED
from support.promises import promise
from support.usage import Usage


@pytest.fixture
async def month(alice: Customer, worker_engine: AsyncEngine, owner: psycopg.Connection) -> LastMonth:
    group_id: str = (await alice.create_group())["id"]
    return await LastMonth.of(alice, Usage(worker_engine, {group_id: alice}), owner, group_id)


async def adjust(month: LastMonth, issuer: Issuer = UNTAXED) -> int:
    return await adjust_closed_months(month.usage.engine, issuer)


async def billed_and_credited(month: LastMonth) -> tuple[int, int]:
    """Without tax."""
    documents = (await month.customer.get("/v1/invoices", params={"limit": "200"}))["items"]
    sums = [
        sum(each["subtotal_micros"] for each in documents if each["kind"] == kind)
        for kind in ("invoice", "credit_note")
    ]
    return sums[0], -sums[1]


def throttled(month: LastMonth, *numbers: int) -> list[Any]:
    return month.minutes(numbers, throttled_within_sla_entries=1)


async def test_a_credit_that_grows_is_issued_at_once(month: LastMonth, alice: Customer) -> None:
    await month.ingest(month.minutes(range(MINUTES)))
    assert await month.close(TAXED) == 1
    assert await adjust(month, TAXED) == 0
    await month.ingest(throttled(month, 5))
    assert await adjust(month, TAXED) == 1
    await month.ingest(throttled(month, 6, 7))
    assert await adjust(month, TAXED) == 1
    assert await adjust(month, TAXED) == 0
    invoice, first, second = await month.documents()
    fee = invoice["subtotal_micros"]
    assert (first["subtotal_micros"], second["subtotal_micros"]) == (
        -(fee * 10 // 100),
        -(fee * 25 // 100 - fee * 10 // 100),
    )
    year = f"{datetime.now(UTC):%Y}"
    assert [note["number"] for note in (first, second)] == [f"CN-{year}-000001", f"CN-{year}-000002"]
    for note in (first, second):
        assert (note["corrects_invoice_id"], note["period_start"]) == (invoice["id"], invoice["period_start"])
        assert "throughput 9" in note["lines"][0]["description"]
    report = await alice.get(f"/v1/groups/{month.group_id}/sla", params={"month": month.name})
    assert report["credit_percent"] == 25


async def test_a_credit_that_would_shrink_is_not_taken_back(month: LastMonth) -> None:
    """At the close telemetry is missing; it comes later, and shows that nothing was amiss."""
    await month.ingest(month.minutes(number for number in range(MINUTES) if not 10 <= number < 12))
    assert await month.close() == 2
    fee, before = await billed_and_credited(month)
    assert before > 0
    await month.ingest(month.minutes(range(10, 12)))
    assert await adjust(month) == 0
    await month.ingest(throttled(month, 20))
    assert await adjust(month) == 0, "10 % are less than what was credited"
    assert await billed_and_credited(month) == (fee, before)
    await month.ingest(throttled(month, *range(50)))
    assert await adjust(month) == 1
    assert await billed_and_credited(month) == (fee, fee), (
        "as much as by the report, and not on top of what was credited"
    )


async def test_corrections_of_a_closed_month(operator: httpx2.AsyncClient, month: LastMonth) -> None:
    """Use that was billed too much comes back on a credit note at once, other use with the next invoice."""
    await month.ingest(month.minutes(range(MINUTES)))
    await month.close(TAXED)
    of_month = {"kind": "appends", "day": month.day}
    await corrected(operator, month.group_id, **of_month, quantity=-700)
    await corrected(operator, month.group_id, **of_month, quantity=300, reason="lost by a server")
    assert (await correct(operator, month.group_id, **of_month, quantity=-501)).status_code == 422, "1,200 less 700"
    waiting = (await month.customer.get("/v1/invoices/current"))["lines"]
    assert [line["quantity"] for line in waiting if line["correction_id"]] == [300]
    assert await adjust(month, TAXED) == 1
    assert await adjust(month, TAXED) == 0
    assert (await correct(operator, month.group_id, **of_month, quantity=-501)).status_code == 422
    invoice, note = await month.documents()
    (line,) = note["lines"]
    assert (line["kind"], line["quantity"], line["description"]) == (
        "appends",
        -700,
        "Correction: it was counted twice",
    )
    assert (line["amount_micros"], note["corrects_invoice_id"]) == (-105, invoice["id"])
    assert note["tax_micros"] == -20, "19 % of 105"
    current = await month.customer.get("/v1/invoices/current")
    assert [line["quantity"] for line in current["lines"] if line["correction_id"]] == [300]
    await month.close(TAXED, months=1)
    following = (await month.documents())[2]
    added = [line for line in following["lines"] if line["correction_id"]]
    assert [(line["quantity"], line["description"]) for line in added] == [(300, "Correction: lost by a server")]
    assert (await month.customer.get("/v1/spend"))["by_kind"]["appends"] == 0


async def test_credits_never_exceed_the_fee(
    operator: httpx2.AsyncClient, month: LastMonth, owner: psycopg.Connection
) -> None:
    await month.ingest(month.minutes(range(MINUTES)))
    await month.close(TAXED)
    minutes = {"kind": "sla_minutes", "start": month.at(0), "end": month.at(MINUTES)}
    await corrected(operator, month.group_id, **minutes)
    assert await adjust(month, TAXED) == 1
    await corrected(operator, month.group_id, kind="appends", day=month.day, quantity=-1_200)
    assert await adjust(month, TAXED) == 1
    fee, credits = await billed_and_credited(month)
    assert fee == credits > 0
    last = (await month.documents())[-1]
    assert (last["total_micros"], last["lines"][0]["quantity"]) == (0, -1_200), "it is worth nothing, and on record"
    books = dict(owner.execute("SELECT account, sum(amount_micros)::bigint FROM ledger_entries GROUP BY 1").fetchall())
    assert (books["accounts_receivable"], books["tax_payable"]) == (0, 0), "all is credited, with its tax"


async def test_workers_at_once_issue_one_note(month: LastMonth) -> None:
    await month.ingest(month.minutes(range(MINUTES)))
    await month.close()
    await month.ingest(throttled(month, 1))
    assert sorted(await asyncio.gather(*(adjust(month) for _ in range(4)))) == [0, 0, 0, 1]
    assert len(await month.documents()) == 2


async def test_an_adjustment_that_breaks_off_is_made_later(month: LastMonth, monkeypatch: pytest.MonkeyPatch) -> None:
    await month.ingest(month.minutes(range(MINUTES)))
    await month.close()
    await month.ingest(throttled(month, 1))
    insert = BillingRepository.insert

    async def broken(self: BillingRepository, *given: Any) -> None:
        await insert(self, *given)
        raise RuntimeError("the process ends")

    with monkeypatch.context() as patch:
        patch.setattr(BillingRepository, "insert", broken)
        assert await adjust(month) == 0
    assert len(await month.documents()) == 1
    assert await adjust(month) == 1
    assert (await month.documents())[1]["number"].endswith("-000001"), "the number was taken back"


async def test_an_hour_judged_while_its_month_is_closed_is_noted(
    month: LastMonth, owner: psycopg.Connection, alice: Customer
) -> None:
    """The close may have read the windows before they were complete, and commits after the judgement."""
    organization, hour_s = uuid.UUID(alice.organization_id), int(month.began.timestamp())

    async def judged() -> None:
        async with month.usage.engine.begin() as connection:
            months = MonthRepository(EveryOrganization(connection, "a test"))
            await months.note_judged([(organization, uuid.UUID(month.group_id), hour_s)])

    await judged()
    noted = "SELECT count(*) FROM changed_months"
    assert owner.execute(noted).fetchone() == (0,), "the month is open"
    waiting = (
        "SELECT count(*) FROM pg_locks WHERE NOT granted"
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
    async with month.usage.engine.begin() as connection:
        scope = Scope(connection, organization)
        await MonthRepository(scope).lock()
        judging = asyncio.create_task(judged())
        async with asyncio.timeout(20):
            while owner.execute(waiting).fetchone() == (0,):
                await asyncio.sleep(0.01)
        await MonthRepository(scope).set_closed_until(month.end)
    await judging
    assert owner.execute(noted).fetchone() == (1,)


class Oracle:
    """The credit of the month by the report at each time, from all windows, and the greatest of them."""

    def __init__(self, month: LastMonth, fee: int, sla_credit: int) -> None:
        self.month = month
        self.fee = fee
        self.taken_off = 0
        self.sla_credit = sla_credit
        self.bad: list[tuple[int, int]] = []

    @property
    def credited(self) -> int:
        return self.taken_off + self.sla_credit

    def correct(self, appends: int, quantity: int) -> None:
        was, now = ((15 * each + 50) // 100 for each in (appends, appends + quantity))
        self.taken_off += min(was - now, self.fee - self.credited)

    async def judge(self) -> None:
        shares = await self._shares()
        fee = self.fee - self.taken_off
        owed = min(fee, sum(fee * percent // 100 for percent in shares))
        self.sla_credit = max(self.sla_credit, min(owed, fee))

    async def _shares(self) -> list[int]:
        month = self.month
        async with month.usage.engine.begin() as connection:
            scope = Scope(connection, month.usage.organizations[month.group_id])
            group = await GroupRepository(scope).get(uuid.UUID(month.group_id))
        assert group is not None
        now = datetime.now(UTC)
        report = sla.judged(merged(month.usage.windows), EVERYTHING_REACHED, group, month.start, month.end, now)
        missed = {minute.start_s: minute for minute in report.bad_minutes}
        first_s = int(month.began.timestamp())
        good = {clause.name: 0 for clause in promise("persistent").clauses}
        active_ms = 0
        for number in range(MINUTES):
            if any(start <= number < end for start, end in self.bad):
                continue
            start_s = first_s + number * WINDOW_S
            minute = missed.get(start_s, Minute(start_s, 60_000, 60_000, True, 0, 0, None, 1))
            active_ms += minute.active_ms
            good["throughput"] += minute.is_unthrottled
            good["latency"] += minute.is_timely
        shares = {name: count * 1_000_000 // MINUTES for name, count in good.items()}
        shares["availability"] = active_ms * 1_000_000 // (MINUTES * 60_000)
        return [clause.credit_percent(shares[clause.name]) for clause in promise("persistent").clauses]


@pytest.mark.parametrize("seed", range(2))
async def test_any_history_is_credited_at_its_worst_and_billed_in_full(
    operator: httpx2.AsyncClient, month: LastMonth, seed: int
) -> None:
    rng = random.Random(seed)
    windows = [
        month.window(
            number, 10 * (number + 1), throttled_within_sla_entries=rng.choice((0,) * 30 + (2,)),
            active_ms=rng.choice((60_000,) * 30 + (20_000,)),
        )
        for number in range(MINUTES)
        if rng.random() < 0.97
    ]  # fmt: skip
    rng.shuffle(windows)
    early = rng.randrange(90, len(windows))
    await month.ingest(windows[:early])
    late = windows[early:]
    await month.close()
    invoice = (await month.documents())[0]
    left = {line["kind"]: line["quantity"] for line in invoice["lines"]}["appends"]
    fee, credit = await billed_and_credited(month)
    oracle = Oracle(month, fee, 0)
    await oracle.judge()
    assert oracle.credited == credit
    added = 0
    for _ in range(8):
        what = rng.choice(("late", "late", "bad", "less", "more"))
        if what == "late" and late:
            await month.ingest([late.pop() for _ in range(min(len(late), rng.randrange(1, 6)))])
        elif what == "bad":
            start = rng.randrange(MINUTES)
            oracle.bad.append((start, min(MINUTES, start + rng.randrange(1, 4))))
            await corrected(
                operator, month.group_id, kind="sla_minutes", start=month.at(start), end=month.at(oracle.bad[-1][1])
            )
        elif what in ("less", "more"):
            quantity = rng.randrange(1, 600) * (-1 if what == "less" else 1)
            answer = await correct(operator, month.group_id, kind="appends", day=month.day, quantity=quantity)
            assert answer.status_code == (422 if left + quantity < 0 and what == "less" else 201), answer.text
            if answer.status_code == 201:
                added += quantity
                if what == "less":
                    oracle.correct(left, quantity)
                    left += quantity
        await asyncio.gather(*(adjust(month) for _ in range(rng.randrange(1, 3))))
        await oracle.judge()
        assert (await billed_and_credited(month))[1] == oracle.credited <= fee, seed
    await month.ingest(late)
    await month.close(months=1)
    documents = await month.documents()
    billed = sum(line["quantity"] for each in documents for line in each["lines"] if line["kind"] == "appends")
    metered = (await month.usage.metered(month.customer, None))[uuid.UUID(month.group_id)][0]
    assert billed == metered + added
    assert all(document["total_micros"] >= 0 for document in documents if document["kind"] == "invoice")


GROUP = uuid.UUID(int=1)
COUNTS = st.integers(1, 1 << 40)


def appends(quantity: int) -> Line:
    return Line(GROUP, "g", "appends", "", quantity, "entry", 100, 15, (15 * quantity + 50) // 100)


@given(COUNTS, st.lists(st.one_of(COUNTS, st.sampled_from([0, 10, 25, 100])), max_size=8))
def test_further_credits_add_up(billed: int, steps: Sequence[int]) -> None:
    """Corrections and misses in any order: nothing more when asked again, and never more than the fee."""
    fee = [appends(billed)]
    credited: list[Line] = []
    for number, step in enumerate(steps):
        left = left_of("appends", fee, credited)
        missed = [Missed("latency", step, "late")] if step in (0, 10, 25, 100) else []
        corrections = [] if missed else [_correction(number, -min(step, left))] if left else []
        credited += further_credits(fee, credited, corrections, missed)
        assert further_credits(fee, credited, [], missed) == []
        total = -sum(line.amount_micros for line in credited)
        assert 0 <= total <= fee[0].amount_micros
        of_sla = -sum(line.amount_micros for line in credited if line.kind == "sla_credit")
        worth = appends(left_of("appends", fee, credited)).amount_micros
        assert of_sla >= min(
            sum(worth * each.percent // 100 for each in missed), fee[0].amount_micros - (total - of_sla)
        )
    assert left_of("appends", fee, credited) >= 0


def _correction(number: int, quantity: int) -> UsageCorrection:
    day = datetime(2026, 1, 1, tzinfo=UTC).date()
    return UsageCorrection(uuid.UUID(int=number), GROUP, "appends", quantity, day, "why")
