"""PDF and CSV of a document, without a service: what they say, and that they say it the same each time."""

import csv
import io
import time
import uuid
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pypdf import PdfReader

from quorate_api import limits
from quorate_api.documents import amounts, lines_csv, pdf
from quorate_api.documents.document import Document, DocumentLine
from quorate_api.documents.quantities import quantity_text, unit_price_text
from quorate_api.errors import Problem
from quorate_api.pricing import prices
from quorate_api.tax.parties import Customer, Seller
from support.issuer import SELLER, TAXED

LINE = DocumentLine(
    uuid.UUID(int=1), "orders", "reservation", "Reservation: 1,000 appends/s of 64 B, persistent, 3 replicas",
    2_592_000, "second", 3_600, 12_240, 8_812_800,
)  # fmt: skip
MICROS = st.integers(-(1 << 50), 1 << 50)


def document(lines: list[DocumentLine] | None = None, **changes: object) -> Document:
    lines = [LINE] if lines is None else lines
    customer = Customer("Müller & Söhne")
    issued = datetime(2026, 11, 1, 6, 5, tzinfo=UTC)
    made = Document(
        kind="invoice", number="INV-2026-000042", corrects_number=None, period_start=datetime(2026, 10, 1, tzinfo=UTC),
        period_end=datetime(2026, 11, 1, tzinfo=UTC), issued_at=issued, made_at=issued, currency="USD", seller=SELLER,
        due_at=datetime(2026, 11, 15, tzinfo=UTC), customer=customer, lines=lines,
        taxes=TAXED.tax(SELLER, customer, lines),
    )  # fmt: skip
    return replace(made, **changes)  # type: ignore[arg-type]


def pages(content: bytes) -> list[str]:
    return [page.extract_text() for page in PdfReader(io.BytesIO(content)).pages]


def test_an_invoice_says_everything() -> None:
    (text,) = pages(pdf.render(document()))
    for said in (
        "Quorate Cloud GmbH", "10115 Berlin", "Tax ID DE 123 456 789", "Invoice INV-2026-000042", "Müller & Söhne",
        "1–31 October 2026, UTC", "1 November 2026", "15 November 2026", "orders",
        "720 h", "0.01224 per hour", "8.812800", "VAT 19 %",
        "1.674432", "10.487232", "Total USD", "10.49", "Page 1 of 1", "Amount, USD",
    ):  # fmt: skip
        assert said in text, said
    assert "raft" not in text


def test_a_credit_note_names_what_it_corrects() -> None:
    credit = replace(LINE, kind="sla_credit", quantity=10, unit="percent", amount_micros=-881_280)
    note = document([credit], kind="credit_note", number="CN-2026-000003", corrects_number="INV-2026-000042", taxes=[])
    (text,) = pages(pdf.render(note))
    for said in ("Credit note CN-2026-000003", "Corrects invoice", "INV-2026-000042", "−0.881280", "−0.88", "10 %"):
        assert said in text, said


def test_a_draft_says_so_on_every_page() -> None:
    draft = document([replace(LINE, group_id=uuid.UUID(int=n)) for n in range(40)], number=None, issued_at=None)
    found = pages(pdf.render(draft))
    assert len(found) > 1
    assert "Draft invoice, October 2026" in found[0]
    assert "Not yet" in found[0]
    assert all("Draft, no invoice" in text for text in found)


def test_a_seller_that_is_not_set_is_seen() -> None:
    (text,) = pages(pdf.render(document(seller=Seller())))
    assert "The seller's name is not set" in text
    assert "QUORATE_SELLER_NAME" in text


def test_the_same_document_has_the_same_bytes() -> None:
    first = pdf.render(document())
    pdf.render(document([replace(LINE, group_name="Заказы")]))
    assert pdf.render(document()) == first, "documents between do not matter"
    assert pdf.render(document(customer=Customer("Other"))) != first
    head = PdfReader(io.BytesIO(first)).metadata
    assert head is not None
    assert head.creation_date == datetime(2026, 11, 1, 6, 5, tzinfo=UTC)
    assert (head.title, head.author, head.subject) == (
        "Invoice INV-2026-000042",
        "Quorate Cloud GmbH",
        "Müller & Söhne",
    )


def test_every_typeface_is_inside() -> None:
    reader = PdfReader(io.BytesIO(pdf.render(document())))
    fonts = [font.get_object() for page in reader.pages for font in page["/Resources"]["/Font"].values()]  # type: ignore[index]
    assert len(fonts) == 2
    assert all("/FontFile2" in font["/FontDescriptor"].get_object() for font in fonts)


@settings(max_examples=25, deadline=None)
@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=100))
@example("日本株式会社 🎉")
@example("a\u202eb\u200d\ud7ff\U0010ffff")
@example("x" * 100)
@example(" " * 100)
def test_any_name_is_drawn(name: str) -> None:
    made = document([replace(LINE, group_name=name, description=name)], customer=Customer(name), seller=Seller(name))
    text = "".join(pages(pdf.render(made)))
    assert "Total USD" in text


def test_a_character_that_the_typeface_lacks_is_a_box_with_a_note() -> None:
    assert "A box stands for" not in "".join(pages(pdf.render(document(customer=Customer("Ελλάς Заказы Việt ½ €")))))
    (text,) = pages(pdf.render(document(customer=Customer("日本 Ltd"))))
    assert "A box stands for" in text
    assert " Ltd" in text
    assert "日本 Ltd" in lines_csv.render(document(customer=Customer("日本 Ltd"))).decode()


def test_pages_repeat_their_heads_and_lose_nothing() -> None:
    lines = [
        replace(LINE, group_id=uuid.UUID(int=n // 60), group_name=f"group {n // 60}", amount_micros=1_000_000 + n)
        for n in range(150)
    ]
    found = pages(pdf.render(document(lines)))
    assert len(found) > 3
    for number, text in enumerate(found, 1):
        assert f"Page {number} of {len(found)}" in text
    assert all("Unit price, USD" in text for text in found[:-1])
    assert sum("continued" in text for text in found) >= 2
    whole = "\n".join(found)
    for line in lines:
        assert f"1.{line.amount_micros % 1_000_000:06d}" in whole
    assert found[-1].count("Total USD") == 1


def test_the_most_lines_fit_and_one_more_is_refused() -> None:
    lines = [replace(LINE, group_id=uuid.UUID(int=n // 5)) for n in range(limits.DOCUMENT_LINES_MAX)]
    began = time.process_time()
    content = pdf.render(document(lines))
    assert time.process_time() - began < 30, "about three seconds of a core; tests share theirs"
    assert len(content) < 5_000_000
    with pytest.raises(Problem) as refused:
        pdf.render(document([*lines, LINE]))
    assert refused.value.code == "document_too_large"
    assert "10,001 lines" in refused.value.detail
    assert "lines.csv" in refused.value.detail
    assert lines_csv.render(document([*lines, LINE])).count(b"\r\n") == 10_003, "head, lines and the tax"


def test_the_csv_adds_up() -> None:
    made = document([LINE, replace(LINE, group_name="=cmd()", description='a, "b"\nc', amount_micros=7)])
    rows = list(csv.DictReader(io.StringIO(lines_csv.render(made).decode(), newline="")))
    assert [row["line"] for row in rows] == ["reservation", "reservation", "tax"]
    assert sum(Fraction(row["amount"]) for row in rows) == Fraction(made.total_micros, 1_000_000)
    assert rows[1]["group"] == "'=cmd()", "no spreadsheet takes it for a formula"
    assert rows[1]["description"] == 'a, "b"\nc'
    tax = {name: Fraction(rows[2][name]) for name in ("quantity", "unit_price", "price_quantity", "amount")}
    assert abs(tax["quantity"] * tax["unit_price"] / tax["price_quantity"] - tax["amount"]) <= Fraction(1, 2_000_000)
    assert rows[0]["issued_at"] == "2026-11-01T06:05:00Z"


@given(MICROS, st.lists(MICROS, max_size=4))
def test_cents_add_up_and_are_rounded_once(total: int, taxes: list[int]) -> None:
    cents = amounts.in_cents(total, taxes)
    assert cents.subtotal + sum(cents.taxes) == cents.total
    for exact, whole in ((total, cents.total), *zip(taxes, cents.taxes, strict=True)):
        assert abs(Fraction(exact, 10_000) - whole) <= Fraction(1, 2)
        assert amounts.rounded(-exact) == -whole


@given(MICROS)
def test_amounts_lose_no_digit(micros: int) -> None:
    cents, rest = amounts.exact_parts(micros)
    for text in (cents + rest, amounts.price_text(micros), amounts.plain_text(micros)):
        assert Fraction(text.replace(",", "").replace("−", "-")) == Fraction(micros, 1_000_000)


@pytest.mark.parametrize(
    ("quantity", "unit", "text"),
    [
        (45, "second", "45 s"),
        (79, "second", "1.32 min"),
        (2_592_000, "second", "720 h"),
        (1, "entry", "1 entry"),
        (12_760, "entry", "12,760 entries"),
        (17, "megabyte_second", "< 0.0001 GB-months"),
        (1_500 * prices.MONTH_S, "megabyte_second", "1.5 GB-months"),
        (10, "percent", "10 %"),
        (3, "core", "3 core"),
    ],
)
def test_quantities_in_words(quantity: int, unit: str, text: str) -> None:
    """As the portal says them (portal/src/pages/billing/quantities.test.ts)."""
    assert quantity_text(replace(LINE, quantity=quantity, unit=unit)) == text


def test_prices_in_words() -> None:
    assert unit_price_text(LINE) == "0.01224 per hour"
    appends = replace(LINE, unit="entry", price_quantity=1_000_000, unit_price_micros=150_000)
    assert unit_price_text(appends) == "0.15 per million entries"
    assert unit_price_text(replace(LINE, kind="sla_credit")) == ""
