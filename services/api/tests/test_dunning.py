"""Reminders of overdue invoices: decided by a pure function, recorded once, shown to the customer."""

import asyncio
import uuid
from datetime import UTC, datetime, timedelta

import httpx2
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.billing.issuer import Issuer
from quorate_api.payments.dunning import STAGES, Debt, Stage, dun
from quorate_api.tax import providers
from quorate_api.tax.parties import Seller
from quorate_api.worker.dunning import remind
from quorate_api.worker.month_close import close_months
from support.customer import Customer
from support.invoices import issue, payment

DUE = datetime(2026, 12, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def debt(due_micros: int = 10_000) -> Debt:
    return Debt(uuid.UUID(int=1), uuid.UUID(int=2), DUE, due_micros)


def test_stages_come_in_their_days() -> None:
    told: dict[Stage, datetime] = {}
    for stage, days, next_days in (("reminder", 3, 14), ("second_reminder", 14, 28), ("final_notice", 28, None)):
        early = dun(debt(), told, DUE + days * DAY - timedelta(seconds=1))
        assert (early.command, early.next_at) == (None, DUE + days * DAY)
        found = dun(debt(), told, DUE + days * DAY)
        assert found.command is not None
        assert (found.stage, found.command.stage, found.command.due_micros) == (stage, stage, 10_000)
        assert found.next_at == (None if next_days is None else DUE + next_days * DAY)
        told[found.command.stage] = DUE + days * DAY
    assert dun(debt(), told, DUE + 60 * DAY).command is None
    assert dun(debt(), told, DUE + 60 * DAY).stage == "final_notice"


def test_a_paid_invoice_is_left_alone() -> None:
    found = dun(debt(0), {"reminder": DUE + 3 * DAY}, DUE + 50 * DAY)
    assert (found.stage, found.next_at, found.command) == ("reminder", None, None)


def test_after_a_pause_stages_are_days_apart() -> None:
    late = DUE + 40 * DAY
    first = dun(debt(), {}, late)
    assert first.stage == "reminder"
    assert first.next_at == late + 7 * DAY
    assert dun(debt(), {"reminder": late}, late + 6 * DAY).command is None
    assert dun(debt(), {"reminder": late}, late + 7 * DAY).stage == "second_reminder"
    assert dun(debt(), {}, DUE + 121 * DAY).command is None, "an old debt surprises nobody"


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 24 * 130), st.booleans()), min_size=1, max_size=30))
def test_each_stage_is_told_once_in_order_and_apart(passes: list[tuple[int, bool]]) -> None:
    """A pass is an hour since the due date, and whether the invoice is paid then."""
    told: dict[Stage, datetime] = {}
    for hour, paid in sorted(passes):
        now = DUE + timedelta(hours=hour)
        found = dun(debt(0 if paid else 10_000), dict(told), now)
        if found.command is None:
            continue
        assert not paid
        assert found.command.stage == STAGES[len(told)]
        assert all(now - before >= limits.DUNNING_GAP_DAYS * DAY for before in told.values())
        assert dun(debt(), told | {found.command.stage: now}, now).command is None, "once"
        told[found.command.stage] = now


# --- By the worker


async def stages(customer: Customer, invoice_id: str) -> list[str]:
    return [each["stage"] for each in (await payment(customer, invoice_id))["reminders"]]


async def test_reminders_are_recorded_once_though_workers_repeat(
    alice: Customer,
    bob: Customer,
    worker_engine: AsyncEngine,
    owner: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "DUNNING_INVOICES_MAX", 2)
    overdue = [issue(owner, alice, 1_000_000, due_in=-4 * DAY) for _ in range(3)]
    theirs = issue(owner, bob, 2_000_000, due_in=-4 * DAY)
    for due_in in (14 * DAY, -2 * DAY, -130 * DAY, None):
        issue(owner, alice, 1_000_000, due_in=due_in)
    settled = issue(owner, alice, 1_000_000, due_in=-4 * DAY)
    issue(owner, alice, -1_000_000, corrects=settled)
    assert sum(await asyncio.gather(*(remind(worker_engine) for _ in range(3)))) == 4
    assert await remind(worker_engine) == 0, "a restart repeats nothing"
    heads = (await alice.get("/v1/invoices"))["items"]
    shown = [[each["stage"] for each in head["payment"]["reminders"]] for head in heads if head["payment"]]
    assert sorted(shown) == [[]] * 5 + [["reminder"]] * 3
    assert [await stages(alice, invoice_id) for invoice_id in overdue] == [["reminder"]] * 3
    (given_,) = (await payment(bob, theirs))["reminders"]
    assert (given_["stage"], given_["due_micros"]) == ("reminder", 2_000_000)
    later = datetime.now(UTC) + 11 * DAY
    assert await remind(worker_engine, later) == 5, "and one that has become due"
    assert await stages(alice, overdue[0]) == ["reminder", "second_reminder"]


async def test_a_pass_that_is_interrupted_is_finished_by_the_next(
    alice: Customer, worker_engine: AsyncEngine, owner: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "DUNNING_INVOICES_MAX", 1)
    invoices = [issue(owner, alice, 1_000_000, due_in=-5 * DAY + n * DAY / 4) for n in range(3)]
    owner.execute(
        "CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f" IF NEW.invoice_id = '{invoices[1]}' THEN RAISE 'broken on purpose'; END IF; RETURN NEW; END $$"
    )
    owner.execute("CREATE TRIGGER stop BEFORE INSERT ON payment_reminders FOR EACH ROW EXECUTE FUNCTION stop()")
    with pytest.raises(Exception, match="broken on purpose"):
        await remind(worker_engine)
    assert [await stages(alice, each) for each in invoices] == [["reminder"], [], []]
    owner.execute("DROP TRIGGER stop ON payment_reminders")
    assert await remind(worker_engine) == 2
    assert [await stages(alice, each) for each in invoices] == [["reminder"]] * 3


async def test_a_payment_ends_the_reminders(
    alice: Customer, operator: httpx2.AsyncClient, worker_engine: AsyncEngine, owner: psycopg.Connection
) -> None:
    invoice_id = issue(owner, alice, 1_000_000, due_in=-4 * DAY)
    assert await remind(worker_engine) == 1
    body = {"amount_micros": 1_000_000, "reference": "BANK-1"}
    assert (await operator.post(f"/v1/operator/invoices/{invoice_id}/payments", json=body)).status_code == 201
    assert await remind(worker_engine, datetime.now(UTC) + 30 * DAY) == 0
    assert (await payment(alice, invoice_id))["state"] == "paid"
    for statement in ("UPDATE payment_reminders SET due_micros = 1", "DELETE FROM payment_reminders"):
        with pytest.raises(psycopg.errors.RaiseException, match="append-only"):
            owner.execute(statement)


async def test_a_close_sets_the_due_date_by_the_terms(
    alice: Customer, worker_engine: AsyncEngine, owner: psycopg.Connection
) -> None:
    await alice.create_group("orders")
    begun = datetime.now(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0) - timedelta(hours=2)
    owner.execute("UPDATE groups SET created_at = %s, active_at = %s", (begun, begun))
    await close_months(worker_engine, Issuer(Seller(), providers.none, terms_days=30), datetime.now(UTC), delay_s=0)
    note, invoice = (await alice.get("/v1/invoices"))["items"]
    assert note["payment"] is None
    due_at = datetime.fromisoformat(invoice["payment"]["due_at"])
    assert due_at - datetime.fromisoformat(invoice["issued_at"]) == 30 * DAY
    receivable = owner.execute(
        "SELECT sum(amount_micros) FROM ledger_entries WHERE account = 'accounts_receivable'"
    ).fetchone()
    assert receivable == (invoice["payment"]["due_micros"],), "the books have what is to pay, in whole cents"
