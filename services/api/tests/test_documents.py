"""Invoices and credit notes as documents, through the API, with tax in the books."""

import asyncio
import csv
import io
import uuid
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import httpx2
import psycopg
import pytest
from pypdf import PdfReader
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.billing.issuer import Issuer
from quorate_api.documents import pdf
from quorate_api.errors import Problem
from quorate_api.http.services import Services
from quorate_api.payments.standing import payable
from quorate_api.press import Press
from quorate_api.settings import Settings
from quorate_api.worker.month_close import close_months
from support.customer import Customer, problem
from support.issuer import TAXED, UNTAXED


async def closed(customer: Customer, worker_engine: AsyncEngine, owner: psycopg.Connection, issuer: Issuer) -> None:
    """A group had two hours of the last month without telemetry: there is an invoice, and a credit note."""
    await customer.create_group("orders")
    end = datetime.now(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    begun = end - timedelta(hours=2)
    owner.execute("UPDATE groups SET created_at = %s, active_at = %s", (begun, begun))
    assert await close_months(worker_engine, issuer, datetime.now(UTC), delay_s=0) == 2


async def both(customer: Customer) -> tuple[dict[str, Any], dict[str, Any]]:
    found = {head["kind"]: head["id"] for head in (await customer.get("/v1/invoices"))["items"]}
    return (
        await customer.get(f"/v1/invoices/{found['invoice']}"),
        await customer.get(f"/v1/invoices/{found['credit_note']}"),
    )


async def file_of(customer: Customer, invoice_id: str, name: str) -> httpx2.Response:
    answer = await customer.request("GET", f"/v1/invoices/{invoice_id}/{name}")
    assert answer.status_code == 200, answer.text
    return answer


def text_of(answer: httpx2.Response) -> str:
    return "\n".join(page.extract_text() for page in PdfReader(io.BytesIO(answer.content)).pages)


def exact(micros: int) -> str:
    return f"{'−' if micros < 0 else ''}{abs(micros) // 1_000_000:,}.{abs(micros) % 1_000_000:06d}"


async def test_tax_is_on_the_document_and_in_the_books(
    alice: Customer, worker_engine: AsyncEngine, owner: psycopg.Connection
) -> None:
    await closed(alice, worker_engine, owner, TAXED)
    invoice, note = await both(alice)
    assert [tax["label"] for tax in invoice["taxes"]] == ["VAT 19 %"]
    assert invoice["taxes"][0]["base_micros"] == invoice["subtotal_micros"] > 0
    assert note["taxes"][0]["amount_micros"] == note["tax_micros"] < 0
    assert -invoice["tax_micros"] <= note["tax_micros"]
    for document in (invoice, note):
        assert document["subtotal_micros"] == sum(line["amount_micros"] for line in document["lines"])
        assert document["tax_micros"] == sum(tax["amount_micros"] for tax in document["taxes"])
        assert document["total_micros"] == document["subtotal_micros"] + document["tax_micros"]
        entries = "SELECT account, amount_micros FROM ledger_entries WHERE invoice_id = %s"
        books = dict(owner.execute(entries, (document["id"],)).fetchall())
        assert sum(books.values()) == 0
        assert books["accounts_receivable"] == payable(document["total_micros"])
        assert books["tax_payable"] == -document["tax_micros"]
    heads = (await alice.get("/v1/invoices"))["items"]
    assert [head["tax_micros"] for head in heads] == [note["tax_micros"], invoice["tax_micros"]]


async def test_the_pdf_of_both(alice: Customer, worker_engine: AsyncEngine, owner: psycopg.Connection) -> None:
    await closed(alice, worker_engine, owner, TAXED)
    invoice, note = await both(alice)
    answer = await file_of(alice, invoice["id"], "document.pdf")
    assert answer.headers["content-type"] == "application/pdf"
    assert answer.headers["content-disposition"] == f'attachment; filename="{invoice["number"]}.pdf"'
    text = text_of(answer)
    lines = [exact(line["amount_micros"]) for line in invoice["lines"]]
    sums = [exact(invoice[name]) for name in ("subtotal_micros", "tax_micros", "total_micros")]
    for said in (f"Invoice {invoice['number']}", "alice", "orders", "VAT 19 %", "Quorate Cloud GmbH", *lines, *sums):
        assert said in text, said
    text = text_of(await file_of(alice, note["id"], "document.pdf"))
    for said in (f"Credit note {note['number']}", invoice["number"], exact(note["total_micros"]), "SLA credit"):
        assert said in text, said


async def test_the_bytes_stay_when_names_change(
    alice: Customer, worker_engine: AsyncEngine, owner: psycopg.Connection, services: Services
) -> None:
    await closed(alice, worker_engine, owner, TAXED)
    invoice, _ = await both(alice)
    first = (await file_of(alice, invoice["id"], "document.pdf")).content
    owner.execute("UPDATE organizations SET name = 'renamed'")
    owner.execute("UPDATE groups SET name = 'renamed'")
    services.settings = services.settings.model_copy(update={"seller_name": "Another seller"})
    assert (await file_of(alice, invoice["id"], "document.pdf")).content == first


async def test_a_seller_that_was_not_set_is_looked_up(
    alice: Customer, worker_engine: AsyncEngine, owner: psycopg.Connection, services: Services
) -> None:
    await closed(alice, worker_engine, owner, UNTAXED)
    invoice, note = await both(alice)
    assert invoice["taxes"] == note["taxes"] == []
    assert "QUORATE_SELLER_NAME" in text_of(await file_of(alice, invoice["id"], "document.pdf"))
    services.settings = services.settings.model_copy(update={"seller_name": "Found later"})
    assert "Found later" in text_of(await file_of(alice, invoice["id"], "document.pdf"))


async def test_the_csv_of_both(alice: Customer, worker_engine: AsyncEngine, owner: psycopg.Connection) -> None:
    await closed(alice, worker_engine, owner, TAXED)
    for document in await both(alice):
        answer = await file_of(alice, document["id"], "lines.csv")
        assert answer.headers["content-type"] == "text/csv; charset=utf-8"
        assert answer.headers["content-disposition"] == f'attachment; filename="{document["number"]}.csv"'
        rows = list(csv.DictReader(io.StringIO(answer.text, newline="")))
        assert [row["line"] for row in rows] == [*(line["kind"] for line in document["lines"]), "tax"]
        assert sum(Fraction(row["amount"]) for row in rows) == Fraction(document["total_micros"], 1_000_000)
        assert {(row["document"], row["kind"]) for row in rows} == {(document["number"], document["kind"])}


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """The API of this file taxes, as its worker does."""
    return settings.model_copy(update={"tax": "flat", "tax_rate_ppm": 190_000, "tax_label": "VAT 19 %"})


async def test_the_open_invoice_is_a_draft(alice: Customer) -> None:
    await alice.create_group("заказы")
    await asyncio.sleep(1.1)  # a reservation is billed by the second
    current = await alice.get("/v1/invoices/current")
    assert current["subtotal_micros"] > 0
    assert current["total_micros"] == current["subtotal_micros"] + current["tax_micros"]
    answer = await file_of(alice, "current", "document.pdf")
    month = datetime.now(UTC)
    assert answer.headers["content-disposition"] == f'attachment; filename="draft-{month:%Y-%m}.pdf"'
    text = text_of(answer)
    assert "This is a draft and no invoice." in text
    assert "заказы" in text
    rows = list(csv.DictReader(io.StringIO((await file_of(alice, "current", "lines.csv")).text, newline="")))
    assert [row["line"] for row in rows] == ["reservation", "tax"]
    assert {row["document"] for row in rows} == {""}


async def test_an_empty_month_is_a_draft_too(alice: Customer) -> None:
    assert "Nothing to pay yet." in text_of(await file_of(alice, "current", "document.pdf"))


async def test_other_organizations_documents_are_not_found(
    alice: Customer, bob: Customer, worker_engine: AsyncEngine, owner: psycopg.Connection
) -> None:
    await closed(alice, worker_engine, owner, TAXED)
    for document in await both(alice):
        for name in ("document.pdf", "lines.csv"):
            path = f"/v1/invoices/{document['id']}/{name}"
            problem(await bob.request("GET", path), 404, "not_found")
            problem(await bob.api.get(path), 401, "not_authenticated")
    problem(await bob.request("GET", f"/v1/invoices/{uuid.uuid4()}/document.pdf"), 404, "not_found")
    problem(await bob.request("GET", "/v1/invoices/next/document.pdf"), 422, "validation_failed")


async def test_too_many_lines_for_a_pdf(
    alice: Customer, worker_engine: AsyncEngine, owner: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await closed(alice, worker_engine, owner, TAXED)
    invoice, _ = await both(alice)
    monkeypatch.setattr(limits, "DOCUMENT_LINES_MAX", 0)
    refused = problem(
        await alice.request("GET", f"/v1/invoices/{invoice['id']}/document.pdf"), 409, "document_too_large"
    )
    assert "lines.csv" in refused["detail"]
    await file_of(alice, invoice["id"], "lines.csv")


async def test_a_document_in_the_making_blocks_no_request_and_holds_no_connection(
    alice: Customer, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, go_on = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow(_document: object) -> bytes:
        loop.call_soon_threadsafe(started.set)
        asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result(30)
        return b"%PDF"

    monkeypatch.setattr(pdf, "render", slow)
    path = "/v1/invoices/current/document.pdf"
    waiting = [asyncio.create_task(alice.request("GET", path))]
    await started.wait()
    assert services.engine.pool.checkedout() == 0  # type: ignore[attr-defined]
    await alice.get("/v1/me")
    for _ in range(limits.DOCUMENTS_PER_ORGANIZATION_MAX - 1):
        waiting.append(asyncio.create_task(alice.request("GET", path)))
    while services.press.waiting < limits.DOCUMENTS_PER_ORGANIZATION_MAX:
        await asyncio.sleep(0.01)
    refused = problem(await alice.request("GET", path), 429, "rate_limited")
    assert "documents of your organization" in refused["detail"]
    go_on.set()
    assert [answer.content for answer in await asyncio.gather(*waiting)] == [b"%PDF"] * len(waiting)
    assert services.press.waiting == 0


async def test_documents_that_wait_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "DOCUMENTS_WAITING_MAX", 2)
    press, made = Press(), bytes
    go_on = asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow(text: str) -> bytes:
        asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result(30)
        return text.encode()

    running = [asyncio.create_task(press.make(uuid.uuid4(), slow, text)) for text in ("a", "b")]
    while press.waiting < 2:
        await asyncio.sleep(0.01)
    with pytest.raises(Problem) as refused:
        await press.make(uuid.uuid4(), made, b"c")
    assert refused.value.code == "overloaded"
    go_on.set()
    assert await asyncio.gather(*running) == [b"a", b"b"]
    assert await press.make(uuid.uuid4(), made, b"c") == b"c"
