"""Commitments: their lines against amounts worked out group by group, and on invoices, spend and documents."""

import uuid
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import httpx2
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.billing.calculator import COMMITMENT, Line, commitment_line
from quorate_api.commitments.calculator import Commitment, shares
from quorate_api.months.calendar import month_begin, month_end
from quorate_api.pricing import prices
from quorate_api.worker.month_close import close_months
from support.customer import Customer, bearer, new_key, problem
from support.issuer import UNTAXED

NOVEMBER = datetime(2026, 11, 1, tzinfo=UTC)
DOLLAR = 1_000_000
WHOLE = (1, 1)


def commitment(dollars: int, percent: int, number: int = 0, months: int = 12) -> Commitment:
    end = NOVEMBER
    for _ in range(months):
        end = month_end(end)
    return Commitment(uuid.UUID(int=number), dollars * DOLLAR, months, percent, NOVEMBER, end)


def lines(made: list[Commitment], month: datetime, part: tuple[int, int], reserved: list[int]) -> list[Line]:
    """`reserved`: by groups g1, g2, …"""
    by_group = {uuid.UUID(int=number): amount for number, amount in enumerate(reserved, 1)}
    return [
        commitment_line(share, None if share.group_id is None else f"g{share.group_id.int}")
        for share in shares(made, month, part, by_group)
    ]


def reserved(*amounts: int) -> list[int]:
    return list(amounts)


def amounts(found: list[Line]) -> list[tuple[str, int]]:
    return [(line.group_name, line.amount_micros) for line in found]


def test_reservations_up_to_it_cost_less() -> None:
    found = lines([commitment(100, 20)], NOVEMBER, WHOLE, reserved(300 * DOLLAR, 100 * DOLLAR))
    assert amounts(found) == [("g1", -15 * DOLLAR), ("g2", -5 * DOLLAR)]
    assert {line.kind for line in found} == {COMMITMENT}


def test_what_is_not_reserved_is_owed_less_the_discount() -> None:
    found = lines([commitment(100, 20)], NOVEMBER, WHOLE, reserved(25 * DOLLAR))
    assert amounts(found) == [("g1", -5 * DOLLAR), ("Commitments", 60 * DOLLAR)]
    assert found[-1].group_id is None
    assert amounts(lines([commitment(100, 20)], NOVEMBER, WHOLE, [])) == [("Commitments", 80 * DOLLAR)]


def test_the_highest_discount_comes_first() -> None:
    both = [commitment(100, 20, 1), commitment(50, 35, 2)]
    found = lines(both, NOVEMBER, WHOLE, reserved(120 * DOLLAR))
    assert amounts(found) == [("g1", -17_500_000), ("g1", -14 * DOLLAR), ("Commitments", 24 * DOLLAR)]


def test_it_holds_for_its_months() -> None:
    one = commitment(100, 20, months=1)
    assert lines([one], NOVEMBER, WHOLE, []) != []
    assert lines([one], month_end(NOVEMBER), WHOLE, []) == []
    assert lines([one], NOVEMBER - timedelta(days=30), WHOLE, []) == []


def test_a_part_of_a_month() -> None:
    found = lines([commitment(100, 20)], NOVEMBER, (1, 4), reserved(10 * DOLLAR))
    assert amounts(found) == [("g1", -2 * DOLLAR), ("Commitments", 12 * DOLLAR)]
    assert lines([commitment(100, 20)], NOVEMBER, (0, 4), []) == []


@given(
    st.lists(st.tuples(st.integers(1, 1 << 30), st.integers(0, 100)), max_size=4),
    st.lists(st.integers(1, 1 << 40), max_size=6),
)
def test_nothing_is_lost_or_counted_twice(made: list[tuple[int, int]], reservations: list[int]) -> None:
    """All lines together: each commitment is owed in full less its discount, and the rest of the reservations too."""
    held = [
        Commitment(uuid.UUID(int=number), micros, 12, percent, NOVEMBER, month_end(NOVEMBER))
        for number, (micros, percent) in enumerate(made)
    ]
    found = lines(held, NOVEMBER, WHOLE, reserved(*reservations))
    left, owed = sum(reservations), Fraction(0)
    for micros, percent in sorted(made, key=lambda each: -each[1]):
        owed += Fraction(micros * (100 - percent), 100)
        left -= min(left, micros)
    said = sum(reservations) + sum(line.amount_micros for line in found)
    assert abs(said - (owed + left)) <= len(found), "each line is rounded once"
    for line in found:
        exact = Fraction(line.quantity * line.unit_price_micros, line.price_quantity)
        assert abs(line.amount_micros - exact) <= Fraction(1, 2)
    for group in {line.group_id for line in found if line.group_id}:
        of_group = -sum(line.amount_micros for line in found if line.group_id == group)
        assert 0 <= of_group <= reservations[group.int - 1] + len(held)


# --- The service


async def commit(customer: Customer, dollars: int, months: int = 12, key: str | None = None) -> httpx2.Response:
    asked = {"monthly_micros": dollars * DOLLAR, "months": months}
    return await customer.post("/v1/commitments", asked, key or new_key())


async def test_terms_are_shown_and_made_once(alice: Customer, bob: Customer) -> None:
    before = await alice.get("/v1/commitments")
    assert before["offers"] == [
        {"months": 12, "discount_percent": 20},
        {"months": 36, "discount_percent": 35},
    ]
    assert (before["items"], before["reserved_monthly_micros"]) == ([], 0)
    group = await alice.create_group()
    key = new_key()
    made = await commit(alice, 250, key=key)
    assert made.status_code == 201, made.text
    assert (await commit(alice, 250, key=key)).json() == made.json()
    after = await alice.get("/v1/commitments")
    assert after["items"] == [made.json()]
    assert after["reserved_monthly_micros"] in (0, group["price"]["monthly_micros"])
    start, end = (datetime.fromisoformat(made.json()[name]) for name in ("start", "end"))
    assert start == month_end(month_begin(datetime.now(UTC)))
    assert (end.year - start.year, end.month - start.month) == (1, 0)
    assert (await bob.get("/v1/commitments"))["items"] == []


async def test_what_is_refused(alice: Customer) -> None:
    asked = {"monthly_micros": 100 * DOLLAR, "months": 12}
    problem(await alice.post("/v1/commitments", asked), 422, "validation_failed")  # no Idempotency-Key
    refused = await commit(alice, 100, months=13)
    problem(refused, 422, "validation_failed")
    assert "12 or 36" in refused.text
    problem(await commit(alice, 0), 422, "validation_failed")
    problem(await commit(alice, limits.COMMITMENT_MICROS_MAX), 422, "validation_failed")
    key = await alice.create_key(scopes=["billing"])
    headers = bearer(key) | {"Idempotency-Key": new_key()}
    problem(await alice.api.post("/v1/commitments", json=asked, headers=headers), 403, "permission_denied")
    assert (await alice.api.get("/v1/commitments", headers=bearer(key))).status_code == 200


async def test_nobody_rewrites_one(alice: Customer, owner: psycopg.Connection) -> None:
    await commit(alice, 100)
    for statement in ("UPDATE commitments SET monthly_micros = 1", "DELETE FROM commitments"):
        with pytest.raises(psycopg.errors.RaiseException, match="append-only"):
            owner.execute(statement)


async def begun(alice: Customer, owner: psycopg.Connection, dollars: int, start: datetime) -> None:
    """A commitment for a year from a month that is over, or from this one."""
    owner.execute(
        "INSERT INTO commitments SELECT gen_random_uuid(), organization_id, %s, 12, 20, %s, %s, %s,"
        " (SELECT id FROM users LIMIT 1) FROM organizations WHERE organization_id = %s",
        [dollars * DOLLAR, start, start + timedelta(days=365), start - timedelta(days=1), alice.organization_id],
    )


async def test_the_open_invoice_and_spend(alice: Customer, owner: psycopg.Connection) -> None:
    now = datetime.now(UTC)
    start = month_begin(now)
    await alice.create_group()
    owner.execute("UPDATE groups SET active_at = %s, hourly_micros = 1000000", [start])
    await begun(alice, owner, 10_000, start)
    invoice = await alice.get("/v1/invoices/current")
    kinds = [(line["kind"], line["group_id"] is None) for line in invoice["lines"]]
    assert kinds == [("reservation", False), ("commitment", False), ("commitment", True)]
    reservation, discount, unused = (line["amount_micros"] for line in invoice["lines"])
    assert abs(discount + reservation * 20 / 100) <= 1
    part = (now - start) / (month_end(start) - start)
    assert unused == pytest.approx((10_000 * DOLLAR * part - reservation) * 0.8, rel=0.01)
    spend = await alice.get("/v1/spend")
    assert spend["by_kind"]["commitment"] == pytest.approx(discount + unused, rel=0.01)
    assert spend["spent_micros"] == sum(spend["by_kind"].values())
    assert spend["groups"][0]["by_kind"]["commitment"] == pytest.approx(discount, abs=60_000)
    days = (await alice.get("/v1/spend/days"))["days"]
    assert sum(day["total_micros"] for day in days) == pytest.approx(spend["spent_micros"], rel=0.01)
    metrics = (await alice.request("GET", "/v1/spend/metrics")).text
    assert 'group="Commitments",kind="commitment"' in metrics
    for name in ("document.pdf", "lines.csv"):
        assert (await alice.request("GET", f"/v1/invoices/current/{name}")).status_code == 200


async def test_a_month_without_a_group_is_owed(
    alice: Customer, owner: psycopg.Connection, worker_engine: AsyncEngine
) -> None:
    this = month_begin(datetime.now(UTC))
    last = month_begin(this - timedelta(days=1))
    await begun(alice, owner, 100, last)
    assert await close_months(worker_engine, UNTAXED, this + timedelta(days=2), delay_s=0) == 1
    (head,) = (await alice.get("/v1/invoices"))["items"]
    invoice = await alice.get(f"/v1/invoices/{head['id']}")
    assert [(line["kind"], line["amount_micros"]) for line in invoice["lines"]] == [("commitment", 80 * DOLLAR)]
    assert owner.execute("SELECT count(*) FROM billed_quantities").fetchone() == (0,)
    pdf = await alice.request("GET", f"/v1/invoices/{head['id']}/document.pdf")
    assert pdf.content.startswith(b"%PDF")


def test_terms_are_of_the_price_list() -> None:
    for price_list in prices.LISTS:
        assert all(months > 0 and 0 < percent < 100 for months, percent in price_list.commitments)
