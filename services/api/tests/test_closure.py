"""The end of an organization: suspended, closed, reopened, exported, erased."""

import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx2
import psycopg
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.closure.export import lines
from quorate_api.closure.repository import EXPORTED, HIDDEN, LEFT_OUT
from quorate_api.database.tables import OWNED, metadata
from quorate_api.http.services import Services
from quorate_api.http.standing import OF_PEOPLE
from quorate_api.worker.caps import CapWatch
from quorate_api.worker.closures import close_organizations
from quorate_api.worker.reconcile import Reconciler
from support.access import PRIVATE
from support.coordinator import FakeCoordinator
from support.customer import PASSWORD, SLA, Customer, bearer, problem
from support.invoices import issue
from support.mailbox import Mailbox

CLOSURE = "/v1/organization/closure"
LATER = timedelta(seconds=limits.CLOSURE_GRACE_S + 1)
MUCH_LATER = timedelta(seconds=limits.CLOSED_KEPT_S + 2 * limits.CLOSURE_GRACE_S)
GONE = {
    "admissions", "api_key_secrets", "audit_events", "events", "invitations", "memberships", "quota_requests",
    "sessions", "webhook_deliveries", "webhook_secrets", "webhooks",
}  # fmt: skip
# Without people's data: the law asks for money and for the use behind it, the service needs its own notes.
KEPT = {
    "api_keys", "billed_quantities", "budget_actions", "budget_alerts", "budgets", "changed_months", "checkpoints",
    "commitments", "corrections", "former_slas", "group_events", "groups", "guarantees", "invoice_lines",
    "invoice_taxes", "invoices", "ledger_entries", "organizations", "packed_hours", "partitioned_groups",
    "payment_checkouts", "payment_entries", "payment_events", "payment_reminders", "projects", "quota_overrides",
    "revocations", "settled_logs", "settled_totals", "sla_bad_minutes", "sla_days", "sla_hours", "usage_days",
    "usage_dirty", "usage_hours", "usage_log_days", "usage_windows",
}  # fmt: skip


async def close(customer: Customer) -> httpx2.Response:
    return await customer.post(CLOSURE, {"name": customer.email.split("@", maxsplit=1)[0]})


def suspension(customer: Customer) -> str:
    return f"/v1/operator/organizations/{customer.organization_id}/suspension"


async def test_a_closing_organization_stops_its_groups_and_can_be_reopened(
    alice: Customer, coordinator: FakeCoordinator, worker_engine: AsyncEngine, services: Services
) -> None:
    group, key = await alice.create_group(), await alice.create_key()
    watch = CapWatch(worker_engine, services.coordinator)
    problem(await alice.post(CLOSURE, {"name": "another"}), 422, "validation_failed")
    answer = await close(alice)
    assert answer.status_code == 202, answer.text
    found = answer.json()
    assert found["standing"] == "closing"
    assert datetime.fromisoformat(found["closes_at"]) - datetime.fromisoformat(found["closing_at"]) == timedelta(
        days=14
    )
    assert (await close(alice)).json() == found, "a repetition changes nothing"
    assert (await alice.get("/v1/me"))["organization"]["standing"] == "closing"
    await watch.run()
    assert (await alice.get(f"/v1/groups/{group['id']}"))["access"] == "suspended"
    problem(await alice.post("/v1/projects", {"name": "p"}), 403, "organization_inactive")
    answer = await alice.api.post(f"/v1/projects/{alice.project_id}/groups", json={}, headers=bearer(key))
    problem(answer, 403, "organization_inactive")
    assert (await alice.request("DELETE", CLOSURE)).json()["standing"] == "active"
    await watch.run()
    assert (await alice.get(f"/v1/groups/{group['id']}"))["access"] == "full"
    await alice.create_project("p")


def test_people_go_on_whatever_the_standing() -> None:
    """Reads need no leave, so each change below `/v1/me` is among them; none is left out."""
    changes = {operation for method, path, operation in PRIVATE if path.startswith("/v1/me/") and method != "GET"}
    assert changes | {"log_out"} == OF_PEOPLE


async def test_closed_and_then_erased(
    alice: Customer, bob: Customer, owner: psycopg.Connection, worker_engine: AsyncEngine, services: Services
) -> None:
    group, key = await alice.create_group(), await alice.create_key()
    await close(alice)
    now = datetime.now(UTC)
    assert await close_organizations(worker_engine, now) == 0
    assert await close_organizations(worker_engine, now + LATER) == 1
    await Reconciler(worker_engine, services.coordinator, age_s=0).run()
    problem(await alice.request("GET", f"/v1/groups/{group['id']}/handle"), 404, "not_found")
    answer = await alice.api.get("/v1/me", headers=bearer(key))
    problem(answer, 401, "credentials_invalid")
    standing = await alice.get("/v1/organization")
    assert standing["standing"] == "closed"
    problem(await alice.request("DELETE", CLOSURE), 409, "closure_refused")
    assert (await alice.get("/v1/invoices"))["items"] == []
    assert await close_organizations(worker_engine, now + MUCH_LATER) == 1
    assert await close_organizations(worker_engine, now + MUCH_LATER) == 0
    problem(await alice.request("GET", "/v1/me"), 401, "session_expired")
    credentials = {"email": alice.email, "password": PASSWORD}
    problem(await alice.api.post("/v1/login", json=credentials), 401, "credentials_invalid")
    for table in ("users", "memberships", "sessions", "audit_events", "api_keys", "events", "organizations"):
        rows = owner.execute(f"SELECT * FROM {table}").fetchall()
        assert alice.email not in json.dumps(rows, default=str), table
    assert (await bob.get("/v1/me"))["user"]["email"] == bob.email
    assert len((await bob.get("/v1/audit"))["items"]) == 1, "others keep theirs"


async def test_an_erasure_leaves_no_text_of_people_in_any_table(
    alice: Customer, bob: Customer, owner: psycopg.Connection, worker_engine: AsyncEngine
) -> None:
    reason, name = "for Mallory's wedding", "a-huge-secret"
    for customer in (alice, bob):
        asked = {"wanted": 40, "reason": reason if customer is alice else "another"}
        assert (await customer.request("PUT", "/v1/quotas/projects/request", json=asked)).status_code == 200
        refused = await customer.post(
            f"/v1/projects/{customer.project_id}/groups", {"name": name, **SLA, "rate_per_s": 5_000_000}
        )
        assert refused.status_code == 409, refused.text
        await customer.create_group()
    await alice.create_key()
    assert (await alice.post("/v1/webhooks", {"url": "https://example.com/"})).status_code == 201
    mine = {"organization_id": alice.organization_id}
    assert (await close(alice)).status_code == 202
    now = datetime.now(UTC)
    await close_organizations(worker_engine, now + LATER)
    assert await close_organizations(worker_engine, now + MUCH_LATER) == 1
    assert KEPT | GONE == OWNED, "each table is erased, or kept for a reason"
    for table in sorted(GONE):
        found = owner.execute(f"SELECT count(*) FROM {table} WHERE organization_id = %(organization_id)s", mine)
        assert found.fetchone() == (0,), table
    for table in sorted(metadata.tables):
        text = json.dumps(owner.execute(f"SELECT * FROM {table}").fetchall(), default=str)
        for gone in (reason, alice.email):
            assert gone not in text, table
    for table in ("quota_requests", "admissions"):
        assert owner.execute(f"SELECT DISTINCT organization_id::text FROM {table}").fetchall() == [
            (bob.organization_id,)
        ], "others keep theirs"


async def test_operators_are_not_asked_by_an_organization_that_closes(
    alice: Customer, bob: Customer, operator: httpx2.AsyncClient, worker_engine: AsyncEngine
) -> None:
    for customer in (alice, bob):
        asked = {"wanted": 40, "reason": "a load test"}
        assert (await customer.request("PUT", "/v1/quotas/projects/request", json=asked)).status_code == 200

    async def waiting() -> list[str]:
        found = (await operator.get("/v1/operator/quota-requests")).json()["items"]
        return [each["organization_name"] for each in found]

    assert await waiting() == ["alice", "bob"]
    await close(alice)
    assert await waiting() == ["bob"]
    await alice.request("DELETE", CLOSURE)
    assert await waiting() == ["alice", "bob"], "a reopened one asks still"
    await close(alice)
    now = datetime.now(UTC)
    for later in (LATER, MUCH_LATER):
        assert await close_organizations(worker_engine, now + later) == 1
        assert await waiting() == ["bob"]


async def test_the_audit_log_is_erased_with_its_organization_alone(
    alice: Customer, owner: psycopg.Connection, worker_engine: AsyncEngine
) -> None:
    for statement in ("DELETE FROM audit_events", "UPDATE audit_events SET seq = 9", "TRUNCATE audit_events"):
        with pytest.raises(psycopg.errors.RaiseException, match="append-only"):
            owner.execute(statement)
    owner.execute("SET ROLE quorate_api")
    owner.execute("SET app.erasing = 'x'")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        owner.execute("DELETE FROM audit_events")
    assert len((await alice.get("/v1/audit"))["items"]) == 1


async def test_what_is_owed_comes_first(alice: Customer, owner: psycopg.Connection) -> None:
    invoice = issue(owner, alice, 5_000_000)
    number = owner.execute("SELECT number FROM invoices WHERE id = %s", (invoice,)).fetchone()
    answer = await alice.post("/v1/commitments", {"monthly_micros": 1_000_000, "months": 12}, key="a")
    assert answer.status_code == 201, answer.text
    body = problem(await close(alice), 409, "closure_refused")
    assert number is not None
    assert f"pay the invoice {number[0]}" in body["detail"]
    assert "commitment that ends on" in body["detail"]
    assert (await alice.get("/v1/organization"))["standing"] == "active"


async def test_operators_suspend_and_say_why(
    mailbox: Mailbox, alice: Customer, operator: httpx2.AsyncClient, worker_engine: AsyncEngine, services: Services,
    owner: psycopg.Connection,
) -> None:  # fmt: skip
    owner.execute("UPDATE users SET email_verified_at = now()")
    group = await alice.create_group()
    answer = await operator.put(suspension(alice), json={"reason": "Reports of spam."})
    assert answer.status_code == 200, answer.text
    standing = await alice.get("/v1/organization")
    assert (standing["standing"], standing["suspension_reason"]) == ("suspended", "Reports of spam.")
    problem(await alice.post("/v1/projects", {"name": "p"}), 403, "organization_inactive")
    watch = CapWatch(worker_engine, services.coordinator)
    await watch.run()
    assert (await alice.get(f"/v1/groups/{group['id']}"))["access"] == "suspended"
    texts = dict(await mailbox.fetch(alice.email))
    assert "Reports of spam." in texts["alice is suspended on Quorate"]
    event = (await alice.get("/v1/audit"))["items"][0]
    assert (event["operation"], event["actor"]["kind"]) == ("suspend_organization", "operator")
    assert (await operator.delete(suspension(alice))).json()["standing"] == "active"
    await watch.run()
    assert (await alice.get(f"/v1/groups/{group['id']}"))["access"] == "full"
    unknown = suspension(alice).replace(alice.organization_id, alice.project_id)
    problem(await operator.put(unknown, json={"reason": "x"}), 404, "not_found")


async def test_operators_find_organizations(alice: Customer, bob: Customer, operator: httpx2.AsyncClient) -> None:
    await alice.create_group(rate_per_s=2_000)

    async def found(**query: Any) -> list[dict[str, Any]]:
        return list((await operator.get("/v1/operator/organizations", params=query)).json()["items"])

    assert {each["id"] for each in await found()} == {alice.organization_id, bob.organization_id}
    for search in ("LIC", alice.organization_id, alice.email):
        (only,) = await found(search=search)
        assert (only["id"], only["members"], only["groups"], only["rate_per_s"]) == (alice.organization_id, 1, 1, 2_000)
        assert only["hourly_micros"] > 0
    assert await found(search="%") == []
    for odd in ("\0", "a\nb", "", "x" * 255):
        answer = await operator.get("/v1/operator/organizations", params={"search": odd})
        assert [each["field"] for each in problem(answer, 422, "validation_failed")["errors"]] == ["search"]
    page = (await operator.get("/v1/operator/organizations", params={"limit": 1})).json()
    rest = await operator.get("/v1/operator/organizations", params={"limit": 1, "cursor": page["next_cursor"]})
    assert {page["items"][0]["id"], rest.json()["items"][0]["id"]} == {alice.organization_id, bob.organization_id}


async def test_an_export_is_whole_and_holds_no_secret(
    alice: Customer, bob: Customer, owner: psycopg.Connection
) -> None:
    await alice.create_group("orders")
    key = await alice.create_key()
    webhook = (await alice.post("/v1/webhooks", {"url": "https://example.com/"})).json()
    issue(owner, alice, 5_000_000)
    answer = await alice.request("GET", "/v1/organization/export")
    assert answer.status_code == 200
    body, _, last = answer.text.rstrip("\n").rpartition("\n")
    body += "\n"
    assert json.loads(last) == {"end": {"lines": body.count("\n"), "sha256": hashlib.sha256(body.encode()).hexdigest()}}
    rows = [json.loads(line) for line in body.splitlines()]
    tables = {row["table"] for row in rows}
    assert tables >= {"organizations", "memberships", "projects", "groups", "api_keys", "audit_events", "invoices"}
    assert [row["row"]["email"] for row in rows if row["table"] == "memberships"] == [alice.email]
    for secret in (key["secret"], webhook["secret"], alice.cookie, bob.email, bob.organization_id):
        assert secret not in answer.text


async def test_an_export_is_of_one_moment(alice: Customer, services: Services) -> None:
    export = lines(services, UUID(alice.organization_id))
    text = await anext(export)
    assert (await alice.post("/v1/projects", {"name": "later"})).status_code == 201
    text += "".join([each async for each in export])
    assert '"table": "projects"' in text
    assert '"later"' not in text


def test_each_table_is_exported_or_left_out_for_a_reason() -> None:
    assert set(EXPORTED) | LEFT_OUT.keys() == OWNED
    kept = {column.name for name in EXPORTED for column in metadata.tables[name].c} - HIDDEN
    assert not [name for name in kept if name.endswith(("_hmac", "sealed", "password_hash"))]


async def test_only_owners_close_and_export(alice: Customer, owner: psycopg.Connection) -> None:
    owner.execute("UPDATE memberships SET role = 'admin'")
    problem(await close(alice), 403, "permission_denied")
    problem(await alice.request("GET", "/v1/organization/export"), 403, "permission_denied")
    assert (await alice.get("/v1/organization"))["standing"] == "active"
