"""Prices, lines, credits and ledger entries: exact, against plain fractions."""

import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, getcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate_api.billing import calculator
from quorate_api.billing.calculator import BilledGroup, Line, Missed, Reservation
from quorate_api.coordinator.schemas import ResourceDemand
from quorate_api.payments.standing import payable
from quorate_api.pricing import prices
from quorate_api.pricing.prices import PriceList

getcontext().prec = 60
GROUP = BilledGroup(uuid.UUID(int=1), "orders", (Reservation(None, 12_345, "1,000 appends/s"),))
PRICES = prices.LISTS[-1]
KINDS = ("reservation", "appends", "reads", "egress", "storage")
QUANTITIES = st.fixed_dictionaries({kind: st.integers(0, 1 << 50) for kind in KINDS})
AMOUNTS = st.floats(0, 1e9, allow_nan=False)


@given(st.integers(0, 1 << 60), st.integers(0, 1 << 40), st.integers(1, 1 << 40))
def test_rounding_is_half_up_and_once(quantity: int, price: int, per: int) -> None:
    exact = Decimal(quantity) * price / per
    assert prices.amount_micros(quantity, price, per) == int(exact.quantize(Decimal(1), ROUND_HALF_UP))


@given(AMOUNTS, AMOUNTS, AMOUNTS)
def test_reservations_are_rounded_up_per_resource(cpu: float, network: float, storage: float) -> None:
    demand = ResourceDemand(cpu=cpu, network_bytes_per_s=network, storage_io_per_s=storage)
    for price in PRICES.resources:
        exact = Fraction(getattr(demand, price.attribute)) * price.hourly_micros / price.units
        assert 0 <= prices.hourly_of(price, demand) - exact < 1


@given(st.lists(QUANTITIES, min_size=1, max_size=6))
def test_invoices_bill_everything_once(increments: list[dict[str, int]]) -> None:
    """Quantities on invoices add up to the metered ones, for every division into months."""
    metered, billed = dict.fromkeys(KINDS, 0), dict.fromkeys(KINDS, 0)
    for increment in increments:
        metered = {kind: metered[kind] + increment[kind] for kind in KINDS}
        lines = calculator.invoice_lines(GROUP, metered, billed, PRICES)
        for line in lines:
            billed[line.kind] += line.quantity
            exact = Fraction(line.quantity * line.unit_price_micros, line.price_quantity)
            assert abs(line.amount_micros - exact) <= Fraction(1, 2)
        assert billed == metered
        assert calculator.invoice_lines(GROUP, metered, billed, PRICES) == [], "closing again bills nothing"


@given(
    st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 1 << 30)), min_size=1, max_size=5),
    st.lists(st.integers(0, 12_000), min_size=1, max_size=6),
)
def test_every_second_is_billed_once_at_the_price_of_its_time(spans: list[tuple[int, int]], closes: list[int]) -> None:
    ends = [*sorted(end for end, _ in spans)[:-1], None]
    reservations = tuple(
        Reservation(end, price, str(n)) for n, (end, (_, price)) in enumerate(zip(ends, spans, strict=True))
    )
    group = BilledGroup(uuid.UUID(int=3), "g", reservations)

    def price_of(second: int) -> int:
        return next(each for each in reservations if each.until_s is None or second < each.until_s).hourly_micros

    billed = 0
    for at_s in sorted(closes):
        lines = calculator.invoice_lines(group, {"reservation": at_s}, {"reservation": billed}, PRICES)
        for each in lines:
            assert {price_of(billed), price_of(billed + each.quantity - 1)} == {each.unit_price_micros}
            billed += each.quantity
        assert billed == at_s


def line(amount: int) -> Line:
    return Line(GROUP.group_id, GROUP.name, "reservation", "", 1, "second", 1, amount, amount)


@given(
    st.lists(st.integers(0, 1 << 40), min_size=1, max_size=5),
    st.lists(st.sampled_from([10, 25, 50, 100]), max_size=3),
)
def test_credits_never_exceed_the_fee(amounts: list[int], percents: list[int]) -> None:
    lines = [line(amount) for amount in amounts]
    credits = calculator.credit_lines(lines, [Missed(f"clause {n}", percent, "") for n, percent in enumerate(percents)])
    fee = sum(amounts)
    owed = -sum(credit.amount_micros for credit in credits)
    assert 0 <= owed <= fee
    wanted = sum(fee * percent // 100 for percent in percents)
    assert owed == min(fee, wanted)
    assert all(credit.amount_micros < 0 for credit in credits)
    for lines_ in (lines, credits):
        assert sum(calculator.ledger(lines_).values()) == 0
        exact = sum(each.amount_micros for each in lines_)
        books = calculator.ledger(lines_)
        assert books.get("accounts_receivable", 0) + books.get("rounding", 0) == exact
        assert books.get("accounts_receivable", 0) == payable(exact), "what is to pay, in whole cents"


def test_an_example_a_person_can_check() -> None:
    """A day of a group at 0.36 USD an hour, two and a half million appends, 3 GB read, 10 GB kept for ten days."""
    group = BilledGroup(uuid.UUID(int=2), "g", (Reservation(None, 360_000, ""),))
    metered = {
        "reservation": 86_400,
        "appends": 2_500_000,
        "reads": 0,
        "egress": 3_000_000_000,
        "storage": 10_000 * prices.MONTH_S // 3,
    }
    assert {each.kind: each.amount_micros for each in calculator.invoice_lines(group, metered, {}, PRICES)} == {
        "reservation": 24 * 360_000,
        "appends": 375_000,
        "egress": 150_000,
        "storage": 400_000,
    }


def list_from(valid_from: datetime, appends_micros: int) -> PriceList:
    usage = tuple(
        replace(price, unit_price_micros=appends_micros) if price.kind == prices.APPENDS else price
        for price in PRICES.usage
    )
    return PriceList(valid_from, PRICES.resources, usage, PRICES.guarantee_hourly_micros, PRICES.commitments)


def test_a_list_holds_from_its_month_on(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = datetime(2027, 3, 1, tzinfo=UTC)
    lists = (PRICES, list_from(begin, 1))
    monkeypatch.setattr(prices, "LISTS", lists)
    assert prices.at(begin - timedelta(microseconds=1)) is PRICES
    assert prices.at(begin) is prices.at(begin + timedelta(days=400)) is lists[1]
    assert prices.at(datetime(2020, 1, 1, tzinfo=UTC)) is PRICES


def test_lists_are_in_order() -> None:
    march, april = (datetime(2027, month, 1, tzinfo=UTC) for month in (3, 4))
    assert prices.in_order([list_from(march, 1), list_from(april, 2)])
    for wrong in (
        [list_from(april, 1), list_from(march, 2)],
        [list_from(march, 1), list_from(march, 2)],
        [list_from(march + timedelta(days=1), 1)],
        [replace(list_from(march, 1), usage=PRICES.usage[:2])],
    ):
        assert not prices.in_order(wrong)
