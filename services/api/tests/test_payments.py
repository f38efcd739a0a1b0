"""Payment of invoices: where one stands, what operators record, and how a customer is told to pay."""

import asyncio
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import httpx2
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate_api.checkout.port import Manual
from quorate_api.http.services import Services
from quorate_api.payments.standing import Owed, payable, standing
from support.customer import Customer, new_key, problem
from support.invoices import issue, payment

NOW = datetime(2026, 12, 1, tzinfo=UTC)
CENT = 10_000


@dataclass(frozen=True)
class Entry:
    id: uuid.UUID
    kind: str
    amount_micros: int
    reverses_id: uuid.UUID | None = None


def entry(number: int, kind: str, cents: int, reverses: int | None = None) -> Entry:
    return Entry(uuid.UUID(int=number), kind, cents * CENT, None if reverses is None else uuid.UUID(int=reverses))


def owed(total: int, *credits: int, due_at: datetime | None = NOW) -> Owed:
    return Owed(total, credits, due_at)


@pytest.mark.parametrize(
    ("total", "cents"), [(0, 0), (4_999, 0), (5_000, 1), (14_999, 1), (15_000, 2), (-5_000, -1), (-14_999, -1)]
)
def test_a_total_is_paid_in_whole_cents_rounded_half_up(total: int, cents: int) -> None:
    assert payable(total) == cents * CENT


def test_an_invoice_is_overdue_from_its_due_date_on() -> None:
    second = timedelta(seconds=1)
    assert standing(owed(CENT), [], NOW - second).state == "open"
    assert standing(owed(CENT), [], NOW).state == "overdue"
    assert standing(owed(CENT), [entry(1, "payment", 1)], NOW).state == "paid"
    assert standing(owed(CENT, due_at=None), [], NOW).state == "open", "from before there were due dates"
    assert standing(owed(4_999), [], NOW).state == "paid", "nothing below a cent is charged"


def test_credit_notes_and_payments_reduce_what_is_due() -> None:
    found = standing(owed(100 * CENT + 1_234, -(30 * CENT) - 777), [entry(1, "payment", 20)], NOW)
    assert (found.payable_micros, found.paid_micros, found.due_micros) == (70 * CENT, 20 * CENT, 50 * CENT)
    found = standing(owed(100 * CENT, -100 * CENT), [entry(1, "payment", 20)], NOW)
    assert (found.state, found.due_micros, found.overpaid_micros) == ("paid", 0, 20 * CENT)


def test_what_is_written_off_is_not_paid() -> None:
    entries = [entry(1, "payment", 4), entry(2, "write_off", 6)]
    found = standing(owed(10 * CENT), entries, NOW)
    assert (found.state, found.paid_micros, found.written_off_micros) == ("written_off", 4 * CENT, 6 * CENT)
    found = standing(owed(10 * CENT), [*entries, entry(3, "reversal", 6, 2)], NOW)
    assert (found.state, found.due_micros) == ("overdue", 6 * CENT)


@settings(deadline=None)
@given(
    st.integers(0, 10**12),
    st.lists(st.integers(0, 100), max_size=3),
    st.lists(st.tuples(st.sampled_from(["payment", "write_off"]), st.integers(1, 10**6), st.booleans()), max_size=6),
    st.randoms(use_true_random=False),
)
def test_standings_add_up_in_any_order(total: int, shares: list[int], paid: list[Any], order: Any) -> None:
    credits = [-total * share // 100 for share in shares]
    entries, counted = [], {"payment": 0, "write_off": 0}
    for number, (kind, cents, is_reversed) in enumerate(paid):
        entries.append(entry(2 * number, kind, cents))
        if is_reversed:
            entries.append(entry(2 * number + 1, "reversal", cents, 2 * number))
        else:
            counted[kind] += cents * CENT
    found = standing(owed(total, *credits), entries, NOW)
    order.shuffle(entries)
    assert standing(owed(total, *credits), entries, NOW) == found
    assert (found.paid_micros, found.written_off_micros) == (counted["payment"], counted["write_off"])
    assert found.due_micros >= 0 <= found.overpaid_micros
    assert found.due_micros * found.overpaid_micros == 0
    left = found.due_micros - found.overpaid_micros
    assert left == found.payable_micros - found.paid_micros - found.written_off_micros
    exact = max(Fraction(0), Fraction(total + sum(credits)))
    assert abs(found.payable_micros - exact) <= Fraction(CENT, 2) * (1 + len(credits))
    assert (found.state in ("paid", "written_off")) == (found.due_micros == 0)


# --- Over the API


async def record(operator: httpx2.AsyncClient, invoice_id: str, key: str | None = None, **body: Any) -> httpx2.Response:
    headers = {"Idempotency-Key": key} if key else {}
    body = {"reference": "BANK-1", **body}
    return await operator.post(f"/v1/operator/invoices/{invoice_id}/payments", json=body, headers=headers)


async def test_money_is_recorded_until_the_invoice_is_paid(
    alice: Customer, operator: httpx2.AsyncClient, owner: psycopg.Connection
) -> None:
    invoice_id = issue(owner, alice, 1_000_000 + 4_999)
    assert await payment(alice, invoice_id) == {
        "state": "open", "provider": "manual", "due_at": (await payment(alice, invoice_id))["due_at"],
        "payable_micros": 1_000_000, "paid_micros": 0, "written_off_micros": 0, "due_micros": 1_000_000,
        "overpaid_micros": 0, "reminders": [],
    }  # fmt: skip
    answer = await record(operator, invoice_id, amount_micros=400_000)
    assert answer.status_code == 201, answer.text
    assert answer.json()["payment"]["due_micros"] == 600_000
    too_much = problem(
        await record(operator, invoice_id, amount_micros=610_000, reference="2"), 409, "payment_exceeds_due"
    )
    assert too_much["errors"][0]["field"] == "amount_micros"
    assert (await record(operator, invoice_id, amount_micros=600_000, reference="2")).status_code == 201
    assert (await payment(alice, invoice_id))["state"] == "paid"
    (head,) = (await alice.get("/v1/invoices"))["items"]
    assert head["payment"]["state"] == "paid"
    items = (await alice.get(f"/v1/invoices/{invoice_id}/payments"))["items"]
    assert [(item["kind"], item["reference"], item["amount_micros"]) for item in items] == [
        ("payment", "2", 600_000), ("payment", "BANK-1", 400_000),
    ]  # fmt: skip
    page = await alice.get(f"/v1/invoices/{invoice_id}/payments", params={"limit": 1})
    rest = await alice.get(f"/v1/invoices/{invoice_id}/payments", params={"cursor": page["next_cursor"]})
    assert [*page["items"], *rest["items"]] == items
    problem(await record(operator, invoice_id, amount_micros=CENT, reference="3"), 409, "payment_exceeds_due")


async def test_a_credit_note_is_not_paid_and_reduces_its_invoice(
    alice: Customer, operator: httpx2.AsyncClient, owner: psycopg.Connection
) -> None:
    invoice_id = issue(owner, alice, 1_000_000)
    note_id = issue(owner, alice, -250_000, corrects=invoice_id)
    assert (await alice.get(f"/v1/invoices/{note_id}"))["payment"] is None
    assert (await payment(alice, invoice_id))["due_micros"] == 750_000
    problem(await record(operator, note_id, amount_micros=CENT), 404, "not_found")
    problem(await alice.post(f"/v1/invoices/{note_id}/checkout", None), 404, "not_found")


async def test_the_same_money_is_recorded_once(
    alice: Customer, operator: httpx2.AsyncClient, owner: psycopg.Connection
) -> None:
    invoice_id, key = issue(owner, alice, 1_000_000), new_key()
    first = await record(operator, invoice_id, key, amount_micros=10_000)
    again = await record(operator, invoice_id, key, amount_micros=10_000)
    assert again.json() == first.json()
    # Idempotency-Keys are kept for a day; the reference counts for ever, and for two operators at once.
    problem(await record(operator, invoice_id, amount_micros=10_000), 409, "payment_recorded")
    answers = await asyncio.gather(
        *(record(operator, invoice_id, amount_micros=20_000, reference="BANK-2") for _ in range(4))
    )
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409]
    assert (await payment(alice, invoice_id))["paid_micros"] == 30_000


async def test_a_mistake_is_reversed_and_recorded_anew(
    alice: Customer, operator: httpx2.AsyncClient, owner: psycopg.Connection
) -> None:
    invoice_id, other_id = issue(owner, alice, 1_000_000), issue(owner, alice, 1_000_000)
    wrong = (await record(operator, invoice_id, amount_micros=900_000)).json()["entry"]
    back = {"kind": "reversal", "reverses_id": wrong["id"], "reference": "typing error"}
    problem(await record(operator, other_id, **back), 404, "not_found")
    reversal = await record(operator, invoice_id, **back)
    assert reversal.json()["entry"]["amount_micros"] == 900_000
    assert reversal.json()["payment"]["due_micros"] == 1_000_000
    problem(await record(operator, invoice_id, **back), 409, "payment_recorded")
    of_reversal = {**back, "reverses_id": reversal.json()["entry"]["id"]}
    problem(await record(operator, invoice_id, **of_reversal), 422, "validation_failed")
    assert (await record(operator, invoice_id, amount_micros=90_000)).status_code == 201, "the same reference, anew"
    account = (await operator.get(f"/v1/operator/invoices/{invoice_id}/payments")).json()
    assert [item["kind"] for item in account["items"]] == ["payment", "reversal", "payment"]
    assert account["payment"]["paid_micros"] == 90_000
    moved = owner.execute("SELECT debit_account, credit_account FROM payment_entries ORDER BY id").fetchall()
    assert moved == [
        ("cash:manual", "accounts_receivable"), ("accounts_receivable", "cash:manual"),
        ("cash:manual", "accounts_receivable"),
    ]  # fmt: skip


async def test_a_debt_is_given_up(alice: Customer, operator: httpx2.AsyncClient, owner: psycopg.Connection) -> None:
    invoice_id = issue(owner, alice, 1_000_000, due_in=timedelta(days=-1))
    assert (await payment(alice, invoice_id))["state"] == "overdue"
    answer = await record(operator, invoice_id, kind="write_off", amount_micros=1_000_000, reference="bankrupt")
    assert answer.json()["payment"]["state"] == "written_off"
    problem(await alice.post(f"/v1/invoices/{invoice_id}/checkout", None), 409, "nothing_due")


async def test_fields_at_fault_are_named(operator: httpx2.AsyncClient) -> None:
    for change, field in (
        ({"amount_micros": 0}, "amount_micros"),
        ({"amount_micros": -10_000}, "amount_micros"),
        ({"amount_micros": 10_001}, "amount_micros"),
        ({"amount_micros": 1.5}, "amount_micros"),
        ({"amount_micros": 10**16}, "amount_micros"),
        ({"amount_micros": None}, "body"),
        ({"kind": "reversal"}, "body"),
        ({"kind": "gift"}, "kind"),
        ({"reverses_id": str(uuid.uuid4())}, "body"),
        ({"reference": " "}, "reference"),
        ({"reference": "a\nb"}, "reference"),
        ({"reference": "a" * 201}, "reference"),
        ({"currency": "EUR"}, "currency"),
    ):
        answer = await record(operator, str(uuid.uuid4()), **{"amount_micros": CENT, **change})
        errors = problem(answer, 422, "validation_failed")["errors"]
        assert any(error["field"].startswith(field) for error in errors), (change, errors)


async def test_an_operator_finds_an_invoice_by_its_number(
    alice: Customer, operator: httpx2.AsyncClient, owner: psycopg.Connection
) -> None:
    invoice_id = issue(owner, alice, 1_000_000)
    number = (await alice.get(f"/v1/invoices/{invoice_id}"))["number"]
    (found,) = (await operator.get("/v1/operator/invoices", params={"number": number})).json()["items"]
    assert (found["id"], found["organization_id"]) == (invoice_id, alice.organization_id)
    assert (await operator.get("/v1/operator/invoices", params={"number": "INV-0"})).json()["items"] == []
    for wrong in ("", "INV 1", "INV\0", "é"):
        problem(await operator.get("/v1/operator/invoices", params={"number": wrong}), 422, "validation_failed")
    problem(await operator.get(f"/v1/operator/invoices/{uuid.uuid4()}/payments"), 404, "not_found")
    problem(await record(operator, str(uuid.uuid4()), amount_micros=CENT), 404, "not_found")


async def test_without_a_provider_the_answer_says_how_to_pay(
    alice: Customer, owner: psycopg.Connection, services: Services
) -> None:
    invoice_id = issue(owner, alice, 1_000_000)
    number = (await alice.get(f"/v1/invoices/{invoice_id}"))["number"]
    answer = (await alice.post(f"/v1/invoices/{invoice_id}/checkout", None)).json()
    assert (answer["provider"], answer["amount_micros"], answer["reference"]) == ("manual", 1_000_000, number)
    assert (answer["url"], answer["expires_at"]) == (None, None)
    assert "QUORATE_PAYMENT_INSTRUCTIONS" in answer["instructions"][0]
    services.payments = Manual(("Quorate Cloud GmbH", "IBAN DE00 0000"))
    answer = (await alice.post(f"/v1/invoices/{invoice_id}/checkout", None)).json()
    assert answer["instructions"] == ["Quorate Cloud GmbH", "IBAN DE00 0000"]
    problem(await alice.post("/v1/payments/stripe/events", {"id": "evt_1"}), 404, "not_found")


async def test_entries_stay_as_they_are(
    alice: Customer, operator: httpx2.AsyncClient, owner: psycopg.Connection
) -> None:
    invoice_id = issue(owner, alice, 1_000_000)
    await record(operator, invoice_id, amount_micros=CENT)
    for statement in (
        "UPDATE payment_entries SET amount_micros = 20000",
        "DELETE FROM payment_entries",
        "TRUNCATE payment_entries",
    ):
        with pytest.raises(psycopg.errors.RaiseException, match="append-only"):
            owner.execute(statement)
