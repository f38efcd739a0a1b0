"""Stripe: its calls against Stripe's published mock, its signed events, and pages of which one is open at a time.

stripe-mock checks each request by Stripe's own description of its interface. It keeps no state, so what follows from
an answer is tried with `support/pages.py`.
"""

import asyncio
import hashlib
import hmac
import json
import subprocess
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest

from quorate_api.checkout import providers
from quorate_api.checkout.port import Order, ProviderUnavailable
from quorate_api.checkout.stripe_pages import StripePages
from quorate_api.http.services import Services
from quorate_api.settings import ConfigurationError, Settings
from support.customer import Customer, bearer, new_key, problem
from support.invoices import issue, payment
from support.pages import FakePages, paid_event

KEY, SECRET = "sk_test_1234567890abcdef", "whsec_0123456789"
START_S_MAX = 60  # it takes a second on a free core
MOCK = Path(__file__).resolve().parents[3] / "build" / "bin" / "stripe-mock"


@pytest.fixture(scope="module")
def stripe_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    assert MOCK.is_file(), f"{MOCK} is missing: run `make go`"
    folder = tmp_path_factory.mktemp("stripe-mock")
    with (folder / "out").open("wb") as out:
        process = subprocess.Popen([MOCK, "-http-addr", "127.0.0.1:0"], stdout=out, stderr=subprocess.STDOUT)
    try:
        yield f"http://127.0.0.1:{_port(process, folder / 'out')}"
    finally:
        process.kill()
        process.wait()


def _port(process: subprocess.Popen[bytes], out: Path) -> str:
    until = time.monotonic() + START_S_MAX
    while time.monotonic() < until:
        assert process.poll() is None, out.read_text()
        _, found, after = out.read_text().rpartition("Listening for HTTP at address: ")
        if found and "\n" in after:
            return after.split("\n")[0].rpartition(":")[2]
        time.sleep(0.05)
    raise AssertionError(f"stripe-mock did not start: {out.read_text()}")


@pytest.fixture
def pages(services: Services) -> FakePages:
    made = FakePages()
    services.payments = made
    return made


@pytest.fixture
def stripe(services: Services) -> StripePages:
    """The real provider, of which only events are used."""
    made = StripePages(KEY, SECRET, "http://127.0.0.1:1")
    services.payments = made
    return made


def order(**changes: Any) -> Order:
    values: dict[str, Any] = {
        "invoice_id": uuid.UUID(int=7), "attempt": 1, "number": "INV-2026-000001", "cents": 1_234, "currency": "USD",
        "expires_at": datetime.now(UTC) + timedelta(hours=1), "paid_url": "https://q.example/invoices/7?paid=true",
        "back_url": "https://q.example/invoices/7",
    }  # fmt: skip
    return Order(**values | changes)


# --- Calls, against Stripe's published mock


async def test_a_page_is_opened_and_ended_as_stripe_describes_it(stripe_url: str) -> None:
    provider = StripePages(KEY, SECRET, stripe_url)
    page = await provider.open(order())
    assert page.session_id.startswith("cs_")
    assert page.url.startswith("https://checkout.stripe.com/")
    assert await provider.end(page.session_id) is True


async def test_a_request_that_stripe_refuses_is_our_fault(stripe_url: str) -> None:
    with pytest.raises(ProviderUnavailable, match="refused"):
        await StripePages(KEY, SECRET, stripe_url).open(order(cents="many"))
    with pytest.raises(ProviderUnavailable, match="AuthenticationError"):
        await StripePages("nonsense", SECRET, stripe_url).open(order())


async def test_stripe_that_does_not_answer() -> None:
    with pytest.raises(ProviderUnavailable, match="APIConnectionError"):
        await StripePages(KEY, SECRET, "http://127.0.0.1:1").open(order())


async def test_a_customer_is_sent_to_stripes_page(
    alice: Customer, owner: psycopg.Connection, services: Services, stripe_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    services.payments = StripePages(KEY, SECRET, stripe_url)
    invoice_id = issue(owner, alice, 1_000_000)
    answer = await alice.post(f"/v1/invoices/{invoice_id}/checkout", None, new_key())
    assert answer.status_code == 200, answer.text
    assert answer.json()["url"].startswith("https://checkout.stripe.com/")
    assert KEY not in caplog.text + answer.text


# --- Pages


async def check_out(customer: Customer, invoice_id: str) -> dict[str, Any]:
    answer = await customer.post(f"/v1/invoices/{invoice_id}/checkout", None)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def pay_at_the_bank(operator: httpx2.AsyncClient, invoice_id: str, micros: int) -> None:
    body = {"amount_micros": micros, "reference": f"BANK-{micros}"}
    answer = await operator.post(f"/v1/operator/invoices/{invoice_id}/payments", json=body)
    assert answer.status_code == 201, answer.text


async def told(api: httpx2.AsyncClient, event: str) -> str:
    headers = {"Content-Type": "application/json", "Stripe-Signature": "any"}
    answer = await api.post("/v1/payments/stripe/events", content=event, headers=headers)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["outcome"])


async def test_one_page_is_open_at_a_time(alice: Customer, owner: psycopg.Connection, pages: FakePages) -> None:
    invoice_id = issue(owner, alice, 1_000_000)
    made = await asyncio.gather(*(check_out(alice, invoice_id) for _ in range(4)))
    assert len({each["url"] for each in made}) == 1
    assert len(pages.sessions) == 1
    assert {each.key for each in pages.opened} == {f"{invoice_id}-1"}
    (session,) = pages.sessions.values()
    assert session.order.cents == 100
    assert session.order.paid_url == f"http://testserver/invoices/{invoice_id}?paid=true"


async def test_a_page_of_another_amount_is_ended_first(
    alice: Customer, operator: httpx2.AsyncClient, owner: psycopg.Connection, pages: FakePages
) -> None:
    invoice_id = issue(owner, alice, 1_000_000)
    first = await check_out(alice, invoice_id)
    await pay_at_the_bank(operator, invoice_id, 400_000)
    second = await check_out(alice, invoice_id)
    assert second["url"] != first["url"]
    assert second["amount_micros"] == 600_000
    assert [(each.order.cents, each.status) for each in pages.sessions.values()] == [(100, "expired"), (60, "open")]


async def test_a_page_that_ends_soon_is_replaced(alice: Customer, owner: psycopg.Connection, pages: FakePages) -> None:
    invoice_id = issue(owner, alice, 1_000_000)
    first = await check_out(alice, invoice_id)
    owner.execute("UPDATE payment_checkouts SET created_at = now() - interval '1 hour', expires_at = now()")
    assert (await check_out(alice, invoice_id))["url"] != first["url"]
    assert [each.status for each in pages.sessions.values()] == ["expired", "open"]


async def test_who_has_paid_is_not_asked_again_before_it_is_recorded(
    alice: Customer, api: httpx2.AsyncClient, operator: httpx2.AsyncClient, owner: psycopg.Connection, pages: FakePages
) -> None:
    invoice_id = issue(owner, alice, 1_000_000)
    await check_out(alice, invoice_id)
    event = pages.pay(f"cs_{invoice_id}-1")
    await pay_at_the_bank(operator, invoice_id, 400_000)
    problem(await alice.post(f"/v1/invoices/{invoice_id}/checkout", None), 409, "payment_in_progress")
    assert await told(api, event) == "recorded"
    found = await payment(alice, invoice_id)
    assert (found["state"], found["due_micros"], found["overpaid_micros"]) == ("paid", 0, 400_000)
    problem(await alice.post(f"/v1/invoices/{invoice_id}/checkout", None), 409, "nothing_due")


@pytest.mark.parametrize("away", ["before", "after"])
async def test_an_interrupted_request_is_finished_by_the_next_one(
    alice: Customer, owner: psycopg.Connection, pages: FakePages, away: Any
) -> None:
    invoice_id, key = issue(owner, alice, 1_000_000), new_key()
    pages.away = [away]
    path = f"/v1/invoices/{invoice_id}/checkout"
    problem(await alice.post(path, None, key), 503, "payment_provider_unavailable")
    again = await alice.post(path, None, key)
    assert again.status_code == 200, again.text
    assert list(pages.sessions) == [f"cs_{invoice_id}-1"], "the same attempt, hence the same page"
    assert (await alice.post(path, None, key)).json() == again.json()


async def test_a_page_nobody_was_sent_to_needs_no_end(
    alice: Customer, operator: httpx2.AsyncClient, owner: psycopg.Connection, pages: FakePages
) -> None:
    invoice_id = issue(owner, alice, 1_000_000)
    pages.away = ["after"]
    problem(await alice.post(f"/v1/invoices/{invoice_id}/checkout", None), 503, "payment_provider_unavailable")
    await pay_at_the_bank(operator, invoice_id, 400_000)
    assert (await check_out(alice, invoice_id))["amount_micros"] == 600_000
    assert [(each.order.attempt, each.order.cents) for each in pages.sessions.values()] == [(1, 100), (2, 60)]


async def test_a_developer_does_not_pay(alice: Customer, owner: psycopg.Connection, pages: FakePages) -> None:
    invoice_id = issue(owner, alice, 1_000_000)
    key = bearer(await alice.create_key())
    answer = await alice.api.post(f"/v1/invoices/{invoice_id}/checkout", headers=key)
    problem(answer, 403, "permission_denied")
    assert pages.opened == []


# --- Events


def signed(body: str, at_s: float | None = None, secret: str = SECRET) -> str:
    """As Stripe's documentation describes it, without its library."""
    stamp = int(time.time() if at_s is None else at_s)
    mac = hmac.new(secret.encode(), f"{stamp}.{body}".encode(), hashlib.sha256).hexdigest()
    return f"t={stamp},v1={mac}"


async def send(api: httpx2.AsyncClient, body: str, signature: str | None = None) -> httpx2.Response:
    headers = {"Content-Type": "application/json; charset=utf-8"}
    headers["Stripe-Signature"] = signed(body) if signature is None else signature
    return await api.post("/v1/payments/stripe/events", content=body, headers=headers)


async def test_an_event_is_recorded_once(
    alice: Customer, api: httpx2.AsyncClient, owner: psycopg.Connection, stripe: StripePages
) -> None:
    invoice_id = issue(owner, alice, 1_000_000)
    paid = order(invoice_id=uuid.UUID(invoice_id), cents=100)
    event = paid_event(paid, "evt_1")
    answers = await asyncio.gather(*(send(api, event) for _ in range(4)))
    assert sorted(answer.json()["outcome"] for answer in answers) == ["recorded", "repeated", "repeated", "repeated"]
    assert (await send(api, paid_event(paid, "evt_2"))).json() == {"outcome": "repeated"}, (
        "another event, the same money"
    )
    found = await payment(alice, invoice_id)
    assert (found["state"], found["paid_micros"], found["provider"]) == ("paid", 1_000_000, "stripe")
    (item,) = (await alice.get(f"/v1/invoices/{invoice_id}/payments"))["items"]
    assert (item["provider"], item["reference"]) == ("stripe", f"pi_{paid.key}")


async def test_money_of_a_reversed_entry_is_not_recorded_again_by_its_event(
    alice: Customer,
    api: httpx2.AsyncClient,
    operator: httpx2.AsyncClient,
    owner: psycopg.Connection,
    stripe: StripePages,
) -> None:
    invoice_id = issue(owner, alice, 1_000_000)
    paid = order(invoice_id=uuid.UUID(invoice_id), cents=100)
    assert (await send(api, paid_event(paid, "evt_1"))).json() == {"outcome": "recorded"}
    (item,) = (await alice.get(f"/v1/invoices/{invoice_id}/payments"))["items"]
    body = {"kind": "reversal", "reverses_id": item["id"], "reference": "refunded at Stripe"}
    assert (await operator.post(f"/v1/operator/invoices/{invoice_id}/payments", json=body)).status_code == 201
    assert (await send(api, paid_event(paid, "evt_2"))).json() == {"outcome": "repeated"}
    assert (await payment(alice, invoice_id))["due_micros"] == 1_000_000


async def test_events_that_are_not_stripes_are_refused(
    alice: Customer, api: httpx2.AsyncClient, owner: psycopg.Connection, stripe: StripePages
) -> None:
    invoice_id = issue(owner, alice, 1_000_000)
    event = paid_event(order(invoice_id=uuid.UUID(invoice_id), cents=100), "evt_1")
    now = time.time()
    for wrong in (
        "", "t=1", "v1=00", "t=x,v1=y", "t=9" + "9" * 400 + ",v1=00", f"t={int(now)},v1=é",
        signed(event, secret="whsec_other"), signed(event, now - 301), signed(event + " "), signed(event)[:-1],
        signed(event).replace("v1=", "v0="),
    ):  # fmt: skip
        answer = await send(api, event, wrong) if wrong.isascii() else await send_raw(api, event, wrong)
        problem(answer, 400, "signature_invalid")
    answer = await api.post("/v1/payments/stripe/events", content=event, headers={"Content-Type": "application/json"})
    problem(answer, 400, "signature_invalid")
    large = json.dumps({"id": "evt_1", "more": "x" * (64 << 10)})
    problem(await send(api, large), 413, "body_too_large")
    assert (await payment(alice, invoice_id))["paid_micros"] == 0
    assert (await send(api, event, signed(event, now - 290))).json() == {"outcome": "recorded"}, "within the window"


async def send_raw(api: httpx2.AsyncClient, body: str, signature: str) -> httpx2.Response:
    headers = [(b"Content-Type", b"application/json"), (b"Stripe-Signature", signature.encode("latin-1"))]
    return await api.post("/v1/payments/stripe/events", content=body, headers=headers)


async def test_events_of_others_are_ignored(
    alice: Customer, api: httpx2.AsyncClient, owner: psycopg.Connection, stripe: StripePages
) -> None:
    ours = order(invoice_id=uuid.UUID(issue(owner, alice, 1_000_000)), cents=100)
    for event in (
        paid_event(ours, "evt_1", metadata={}),
        paid_event(ours, "evt_1", metadata=None),
        paid_event(ours, "evt_1", payment_status="unpaid"),
        paid_event(ours, "evt_1").replace("checkout.session.completed", "charge.refunded"),
        paid_event(order(invoice_id=uuid.uuid4()), "evt_1"),
        "[]", "{}", "null", '{"id": "evt_1"}', "not json",
    ):  # fmt: skip
        answer = await send(api, event)
        assert (answer.status_code, answer.json()) == (200, {"outcome": "ignored"}), event
    for odd in (
        {"amount_total": 0}, {"amount_total": None}, {"payment_intent": None}, {"currency": "eur"},
        {"metadata": {"quorate_invoice_id": "x", "quorate_attempt": "1"}},
    ):  # fmt: skip
        problem(await send(api, paid_event(ours, "evt_1", **odd)), 422, "validation_failed")
    assert owner.execute("SELECT count(*) FROM payment_entries").fetchone() == (0,)
    assert owner.execute("SELECT count(*) FROM payment_events").fetchone() == (0,)


# --- Settings


def private(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def test_keys_come_from_private_files(settings: Settings, tmp_path: Path) -> None:
    assert providers.configured(settings).name == "manual"
    key, secret = private(tmp_path / "key", f"{KEY}\n"), private(tmp_path / "hook", SECRET)
    whole = {"payment_provider": "stripe", "stripe_key_file": key, "stripe_webhook_secret_file": secret}
    assert providers.configured(settings.model_copy(update=whole)).name == "stripe"
    for change, message in (
        ({"stripe_key_file": None}, "QUORATE_STRIPE_KEY_FILE"),
        ({"stripe_webhook_secret_file": None}, "QUORATE_STRIPE_WEBHOOK_SECRET_FILE"),
        ({"stripe_key_file": tmp_path / "none"}, "cannot be read"),
        ({"stripe_key_file": private(tmp_path / "open", KEY, 0o644)}, "chmod"),
        ({"stripe_key_file": secret}, "begins with"),
        ({"stripe_webhook_secret_file": private(tmp_path / "two", f"{SECRET}\n{SECRET}")}, "one line"),
    ):
        with pytest.raises(ConfigurationError, match=message) as raised:
            providers.configured(settings.model_copy(update=whole | change))
        assert KEY not in str(raised.value)
        assert SECRET not in str(raised.value)
    assert KEY not in repr(settings.model_copy(update=whole))
