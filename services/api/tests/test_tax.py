"""Taxes: exact, rounded once, and in books that add up."""

import uuid
from decimal import ROUND_HALF_UP, Decimal, getcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from quorate_api.billing import calculator
from quorate_api.billing.calculator import Line
from quorate_api.billing.issuer import Issuer
from quorate_api.payments.books import ROUNDING
from quorate_api.payments.standing import payable
from quorate_api.settings import Settings
from quorate_api.tax import port, providers
from quorate_api.tax.flat import Flat
from quorate_api.tax.parties import Customer, Seller
from support.issuer import SELLER, TAXED

getcontext().prec = 60
AMOUNTS = st.lists(st.integers(0, 1 << 45), min_size=1, max_size=8)
RATES = st.integers(0, port.PPM)
BUYER = Customer("alice")


def lines_of(amounts: list[int], kind: str = "appends") -> list[Line]:
    return [Line(uuid.UUID(int=1), "orders", kind, "", 1, "entry", 1, amount, amount) for amount in amounts]


def half_up(exact: Decimal) -> int:
    """Decimal's ROUND_HALF_UP goes away from zero, so a credit is the mirror of its charge."""
    return int(exact.quantize(Decimal(1), ROUND_HALF_UP))


@given(AMOUNTS, RATES)
def test_a_flat_rate_is_rounded_once(amounts: list[int], rate_ppm: int) -> None:
    (tax,) = Flat("VAT", rate_ppm)(SELLER, BUYER, lines_of(amounts))
    assert tax.base_micros == sum(amounts)
    assert tax.amount_micros == half_up(Decimal(sum(amounts)) * rate_ppm / port.PPM)


@given(AMOUNTS, st.lists(RATES, max_size=3), st.integers(0, port.PPM))
def test_invoice_and_credit_note_add_up(amounts: list[int], rates: list[int], credited_ppm: int) -> None:
    """Several rates, and any part credited: books balance, and the customer gets back no more than was billed."""
    lines = lines_of(amounts)
    subtotal = sum(amounts)
    taxes = [tax for number, rate in enumerate(rates) for tax in Flat(f"tax {number}", rate)(SELLER, BUYER, lines)]
    credit = -(subtotal * credited_ppm // port.PPM)
    notes = lines_of([credit], calculator.SLA_CREDIT) if credit else []
    returned = port.credited(taxes, subtotal, credit) if subtotal else []
    for some_lines, some_taxes in ((lines, taxes), (notes, returned)):
        books = calculator.ledger(some_lines, some_taxes)
        tax = sum(each.amount_micros for each in some_taxes)
        assert sum(books.values()) == 0
        total = sum(each.amount_micros for each in some_lines) + tax
        assert books.get(calculator.RECEIVABLE, 0) == payable(total), "in whole cents"
        assert books.get(calculator.RECEIVABLE, 0) + books.get(ROUNDING, 0) == total
        assert books.get(calculator.TAX_PAYABLE, 0) == -tax
    for tax, back in zip(taxes, returned, strict=bool(returned)):
        assert -tax.amount_micros <= back.amount_micros <= 0
        assert back.amount_micros == half_up(Decimal(tax.amount_micros) * credit / subtotal)
        if credit == -subtotal:
            assert back.amount_micros == -tax.amount_micros, "a credit of everything takes back everything"


@given(AMOUNTS, RATES, st.lists(st.integers(0, port.PPM), max_size=5))
def test_several_credit_notes_take_back_what_one_would(amounts: list[int], rate_ppm: int, parts_ppm: list[int]) -> None:
    subtotal = sum(amounts)
    taxes = Flat("VAT", rate_ppm)(SELLER, BUYER, lines_of(amounts))
    credited, returned = 0, 0
    for part_ppm in parts_ppm:
        credit = -((subtotal + credited) * part_ppm // port.PPM)
        returned += sum(tax.amount_micros for tax in port.credited(taxes, subtotal, credit, credited))
        credited += credit
    assert returned == sum(tax.amount_micros for tax in port.credited(taxes, subtotal, credited))


def test_an_example_a_person_can_check() -> None:
    """19 % of 8.81 USD, and a tenth of it back."""
    (tax,) = TAXED.tax(SELLER, BUYER, lines_of([8_812_800]))
    assert (tax.label, tax.rate_ppm, tax.base_micros, tax.amount_micros) == ("VAT 19 %", 190_000, 8_812_800, 1_674_432)
    (back,) = port.credited([tax], 8_812_800, -881_280)
    assert (back.base_micros, back.amount_micros) == (-881_280, -167_443)


def test_no_tax_has_no_line() -> None:
    assert providers.none(SELLER, BUYER, lines_of([1, 2])) == []
    assert calculator.TAX_PAYABLE not in calculator.ledger(lines_of([1, 2]))


def settings(**given: object) -> Settings:
    return Settings.model_validate({"database_url": "postgresql://unused", **given})


def test_the_issuer_is_configured() -> None:
    assert not Issuer.configured(settings()).seller.is_set
    assert Issuer.configured(settings()).stored_seller() is None
    issuer = Issuer.configured(
        settings(
            seller_name=" Quorate Cloud GmbH ",
            seller_address="Beispielstraße 12; 10115 Berlin;",
            seller_tax_id="DE 123 456 789",
            tax="flat",
            tax_rate_ppm=190_000,
            tax_label="VAT 19 %",
        )
    )
    assert issuer == TAXED
    assert issuer.seller_of(issuer.stored_seller()) == SELLER
    assert issuer.seller_of(None) == SELLER
    other = Issuer(Seller("Other"), providers.none)
    assert other.seller_of(issuer.stored_seller()) == SELLER, "documents keep the seller of their time"


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"tax": "flat", "tax_label": "VAT"}, "QUORATE_TAX_RATE_PPM"),
        ({"tax": "flat", "tax_rate_ppm": 190_000}, "QUORATE_TAX_LABEL"),
        ({"tax_rate_ppm": 190_000}, "set QUORATE_TAX=flat"),
        ({"tax": "flat", "tax_label": "VAT", "tax_rate_ppm": 1_000_001}, "1000000"),
        ({"tax": "avalara"}, "'none' or 'flat'"),
    ],
)
def test_half_a_tax_is_refused(given: dict[str, object], named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        settings(**given)
