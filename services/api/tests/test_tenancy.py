"""No caller sees another organization: endpoint by endpoint, role by role, and row by row."""

import contextlib
import uuid
from itertools import product
from typing import Any

import httpx2
import psycopg
import pytest
from sqlalchemy import text

from quorate_api import app as application
from quorate_api.database.tables import OWNED
from quorate_api.http.services import Services
from quorate_api.openapi import document
from support.customer import SLA, Customer, bearer, new_key, problem

BODIES: dict[str, Any] = {
    "create_key": {"name": "k"},
    "rotate_key": {},
    "create_group": {"name": "g", **SLA},
    "reset_group": {"epoch": 1},
    "resize_group": {"rate_per_s": 1_000},
    "put_guarantee": {"shared_tokens_per_s": 1},
    "quote_guarantee": {"shared_tokens_per_s": 1},
    "save_checkpoint": {"offsets": [{"partition": 0, "next_offset": 1}]},
}

PAYING = {"list_payments", "check_out"}
OPERATIONS = [
    (method.upper(), path, operation["operationId"])
    for path, methods in document(application.bare())["paths"].items()
    for method, operation in methods.items()
]
OPERATOR = "/v1/operator/"  # the fleet belongs to no organization: test_operator
STATUS = "/v1/status"  # everybody's: test_status
ADDRESSED = [
    operation for operation in OPERATIONS if "{" in operation[1] and not operation[1].startswith((OPERATOR, STATUS))
]


async def things_of(customer: Customer, owner: psycopg.Connection) -> dict[str, str]:
    """One of every addressable resource, by its name in paths."""
    group = await customer.create_group()
    key = await customer.create_key()
    invoice_id = uuid.uuid4()
    owner.execute(
        "INSERT INTO invoices VALUES (%s, %s, 'invoice', 1, 'INV-2026-000001', '2026-01-01Z', '2026-02-01Z', 'USD', 0,"
        " NULL, now(), '2026')",
        (invoice_id, customer.organization_id),
    )
    budget = await customer.request("PUT", "/v1/budgets", json={"monthly_micros": 1})
    return {
        "project_id": customer.project_id,
        "group_id": group["id"],
        "key_id": key["id"],
        "budget_id": budget.json()["id"],
        "invoice_id": str(invoice_id),
        "consumer": "billing",
    }


def test_the_matrix_is_whole() -> None:
    """Every address names only resources that the matrix creates, so that no new endpoint escapes it."""
    names = {part[1:-1] for _, path, _ in ADDRESSED for part in path.split("/") if part.startswith("{")}
    assert names == {"project_id", "group_id", "key_id", "invoice_id", "budget_id", "consumer"}
    assert len(ADDRESSED) >= 15


async def test_other_organizations_resources_are_not_found(
    alice: Customer, bob: Customer, owner: psycopg.Connection
) -> None:
    theirs = await things_of(alice, owner)
    key = await bob.create_key(scopes=["append", "read", "manage", "billing"])
    administrator = await bob.create_organization_key()
    for method, path, operation in ADDRESSED:
        address = path.format(**theirs)
        answer = await bob.request(method, address, json=BODIES.get(operation))
        assert answer.status_code == 404, (operation, answer.text)
        problem(answer, 404, "not_found")
        answer = await bob.api.request(method, address, json=BODIES.get(operation), headers=bearer(administrator))
        # It may read neither invoices nor budgets, and is refused before the lookup.
        money = operation.startswith("get_invoice") or "budget" in operation or operation in PAYING
        problem(answer, *((403, "permission_denied") if money else (404, "not_found")))
        answer = await bob.api.request(method, address, json=BODIES.get(operation), headers=bearer(key))
        # Keys are refused calls for people before the lookup, which leaks nothing.
        refused = (404, 403) if operation in ("list_keys", "revoke_key", "rotate_key") else (404,)
        assert answer.status_code in refused, (operation, answer.text)
    for path in ("/v1/projects", "/v1/invoices", "/v1/spend", "/v1/budgets", f"/v1/projects/{bob.project_id}/groups"):
        text = (await bob.request("GET", path)).text
        assert not any(identifier in text for name, identifier in theirs.items() if name != "consumer")
    assert (await alice.get(f"/v1/groups/{theirs['group_id']}"))["status"] == "active", "nothing was done to it"


async def test_own_things_are_found(alice: Customer, owner: psycopg.Connection) -> None:
    """The matrix above is valid only if the same requests work for the owner."""
    own = await things_of(alice, owner)
    # Delete the group last: it contains the others.
    order = {"DELETE": lambda path: (1, -len(path))}
    for method, path, operation in sorted(
        ADDRESSED, key=lambda item: order.get(item[0], lambda path: (0, len(path)))(item[1])
    ):
        if operation == "stream_group":
            continue  # endless; test_live reads it
        answer = await alice.request(method, path.format(**own), json=BODIES.get(operation))
        if operation == "delete_project":
            problem(answer, 409, "project_not_empty")
            continue
        if operation == "reset_group":
            problem(answer, 409, "group_not_lost")  # found and refused; test_groups resets one
            continue
        if operation == "check_out":
            problem(answer, 409, "nothing_due")  # found and refused; test_payments pays one
            continue
        assert answer.is_success, (operation, answer.text)


async def test_a_key_sees_its_project_only(alice: Customer) -> None:
    group = await alice.create_group()
    other = await alice.create_project("other")
    key = await alice.create_key(project_id=other)
    for path in (f"/v1/groups/{group['id']}", f"/v1/groups/{group['id']}/handle", f"/v1/projects/{alice.project_id}",
                 f"/v1/projects/{alice.project_id}/groups", f"/v1/groups/{group['id']}/usage"):  # fmt: skip
        problem(await alice.api.get(path, headers=bearer(key)), 404, "not_found")
    me = (await alice.api.get("/v1/me", headers=bearer(key))).json()
    assert [project["id"] for project in me["projects"]] == [other]
    assert me["user"] is None
    assert me["csrf_token"] is None
    problem(await alice.api.post("/v1/projects", json={"name": "x"}, headers=bearer(key)), 403, "permission_denied")
    problem(
        await alice.api.post(f"/v1/projects/{other}/keys", json={"name": "x"}, headers=bearer(key)),
        403,
        "permission_denied",
    )


async def test_a_key_that_nobody_gave_more_appends_and_reads(alice: Customer) -> None:
    answer = await alice.post(f"/v1/projects/{alice.project_id}/keys", {"name": "app"})
    key = answer.json()
    assert key["scopes"] == ["append", "read"]
    group = await alice.create_group()
    path = f"/v1/groups/{group['id']}"
    handle = await alice.api.get(f"{path}/handle", headers=bearer(key))
    assert handle.status_code == 200, handle.text
    problem(await alice.api.delete(path, headers=bearer(key)), 403, "permission_denied")
    problem(await alice.api.patch(path, json={"rate_per_s": 1}, headers=bearer(key)), 403, "permission_denied")


async def test_a_revoked_key_ends(alice: Customer) -> None:
    key = await alice.create_key()
    assert (await alice.api.get("/v1/me", headers=bearer(key))).status_code == 200
    listed = (await alice.get(f"/v1/projects/{alice.project_id}/keys"))["items"]
    assert listed[0]["last_used_at"] is not None
    assert "secret" not in listed[0]
    assert (await alice.request("DELETE", f"/v1/keys/{key['id']}")).status_code == 204
    problem(await alice.api.get("/v1/me", headers=bearer(key)), 401, "credentials_invalid")
    problem(await alice.request("DELETE", f"/v1/keys/{key['id']}"), 404, "not_found")
    assert (await alice.get(f"/v1/projects/{alice.project_id}/keys"))["items"] == []


# Roles allowed for each request (method, path, body).
ROLES = ("owner", "admin", "developer", "billing", "viewer")
MATRIX: list[tuple[str, str, Any, set[str]]] = [
    ("GET", "/v1/projects", None, set(ROLES)),
    ("POST", "/v1/projects", {"name": "p"}, {"owner", "admin"}),
    ("POST", "/v1/projects/{project_id}/keys", {"name": "k"}, {"owner", "admin"}),
    ("GET", "/v1/projects/{project_id}/keys", None, {"owner", "admin", "developer"}),
    ("POST", "/v1/keys/{key_id}/rotate", {}, {"owner", "admin"}),
    ("GET", "/v1/organization/keys", None, {"owner", "admin"}),
    ("POST", "/v1/organization/keys", {"name": "k"}, {"owner", "admin"}),
    ("POST", "/v1/quotes", SLA, {"owner", "admin", "developer"}),
    ("POST", "/v1/projects/{project_id}/groups", {"name": "g", **SLA}, {"owner", "admin", "developer"}),
    ("GET", "/v1/groups/{group_id}/partitions", None, set(ROLES)),
    ("GET", "/v1/projects/{project_id}/guarantee", None, set(ROLES)),
    ("PUT", "/v1/projects/{project_id}/guarantee", {"shared_tokens_per_s": 1}, {"owner", "admin", "developer"}),
    ("POST", "/v1/projects/{project_id}/guarantee/quote", {"shared_tokens_per_s": 1}, {"owner", "admin", "developer"}),
    ("DELETE", "/v1/projects/{project_id}/guarantee", None, {"owner", "admin", "developer"}),
    ("GET", "/v1/groups/{group_id}", None, set(ROLES)),
    ("PATCH", "/v1/groups/{group_id}", {"rate_per_s": 1_000}, {"owner", "admin", "developer"}),
    ("GET", "/v1/groups/{group_id}/handle", None, {"owner", "admin", "developer"}),
    ("GET", "/v1/groups/{group_id}/sla", None, set(ROLES)),
    ("GET", "/v1/invoices", None, {"owner", "admin", "billing"}),
    ("GET", "/v1/invoices/current", None, {"owner", "admin", "billing"}),
    ("GET", "/v1/invoices/current/document.pdf", None, {"owner", "admin", "billing"}),
    ("GET", "/v1/invoices/{invoice_id}/document.pdf", None, {"owner", "admin", "billing"}),
    ("GET", "/v1/invoices/{invoice_id}/lines.csv", None, {"owner", "admin", "billing"}),
    ("GET", "/v1/invoices/{invoice_id}/payments", None, {"owner", "admin", "billing"}),
    ("GET", "/v1/spend", None, {"owner", "admin", "billing"}),
    ("GET", "/v1/spend/days", None, {"owner", "admin", "billing"}),
    ("GET", "/v1/spend/metrics", None, {"owner", "admin", "billing"}),
    ("GET", "/v1/budgets", None, {"owner", "admin", "billing"}),
    ("PUT", "/v1/budgets", {"monthly_micros": 2}, {"owner", "admin", "billing"}),
    ("GET", "/v1/budgets/{budget_id}", None, {"owner", "admin", "billing"}),
    ("GET", "/v1/budgets/{budget_id}/alerts", None, {"owner", "admin", "billing"}),
    ("DELETE", "/v1/budgets/{budget_id}", None, {"owner", "admin", "billing"}),
    ("GET", "/v1/quotas", None, set(ROLES)),
    ("DELETE", "/v1/keys/{key_id}", None, {"owner", "admin"}),
    ("DELETE", "/v1/groups/{group_id}", None, {"owner", "admin", "developer"}),
    ("DELETE", "/v1/projects/{empty_project_id}", None, {"owner", "admin"}),
]


@pytest.mark.parametrize("role", ROLES)
async def test_roles(alice: Customer, owner: psycopg.Connection, role: str) -> None:
    own = await things_of(alice, owner) | {"empty_project_id": await alice.create_project("empty")}
    owner.execute("UPDATE memberships SET role = %s", (role,))
    for method, path, body, allowed in MATRIX:
        answer = await alice.request(method, path.format(**own), json=body)
        if role in allowed:
            assert answer.is_success, (role, method, path, answer.text)
        else:
            assert problem(answer, 403, "permission_denied")["detail"].count(role) == 1


async def test_cursors_are_of_no_use_elsewhere(alice: Customer, bob: Customer) -> None:
    for name in ("a", "b"):
        await alice.create_project(name)
    cursor = (await alice.get("/v1/projects", params={"limit": 1}))["next_cursor"]
    for customer, path in product((bob,), ("/v1/projects",)):
        problem(await customer.request("GET", path, params={"cursor": cursor}), 400, "cursor_invalid")
    problem(await alice.request("GET", "/v1/invoices", params={"cursor": cursor}), 400, "cursor_invalid")
    for broken in ("", "x", cursor[:-1], cursor[1:], cursor + "A", "é", "===="):
        problem(await alice.request("GET", "/v1/projects", params={"cursor": broken}), 400, "cursor_invalid")


async def test_answers_are_not_replayed_to_others(alice: Customer, bob: Customer) -> None:
    key = new_key()
    first = await alice.post("/v1/projects", {"name": "same"}, key)
    second = await bob.post("/v1/projects", {"name": "same"}, key)
    assert first.json()["id"] != second.json()["id"]


async def test_row_level_security_is_the_second_belt(
    alice: Customer, bob: Customer, owner: psycopg.Connection, owner_url: str
) -> None:
    """A query without a condition sees one organization's rows, and no rows before the organization is set."""
    await things_of(alice, owner)
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute("SET ROLE quorate_api")
        readable = OWNED - {"ledger_entries"}
        for table in readable:
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table
        connection.execute("SELECT set_config('app.organization_id', %s, false)", (bob.organization_id,))
        for table in readable:
            found = connection.execute(f"SELECT DISTINCT organization_id::text FROM {table}").fetchall()
            assert found in ([], [(bob.organization_id,)]), table
        for statement in (
            f"INSERT INTO projects VALUES (gen_random_uuid(), '{alice.organization_id}', 'x', now())",
            "UPDATE invoices SET total_micros = 0",
            "SELECT * FROM ledger_entries",
            "DELETE FROM invoice_taxes",
            "DELETE FROM usage_windows",
            "DELETE FROM budgets",
            "INSERT INTO budget_alerts SELECT * FROM budget_alerts",
            "DELETE FROM changed_months",
            f"INSERT INTO changed_months SELECT '{alice.organization_id}', gen_random_uuid(), now()",
            "UPDATE payment_entries SET amount_micros = 0",
            "DELETE FROM payment_events",
            "UPDATE payment_checkouts SET amount_micros = 0",
            "INSERT INTO payment_reminders SELECT * FROM payment_reminders",
            "INSERT INTO quota_overrides VALUES (gen_random_uuid(), 'projects', 9)",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)
        connection.execute("UPDATE groups SET name = 'stolen'")
    assert owner.execute("SELECT count(*) FROM groups WHERE name = 'stolen'").fetchone() == (0,)


async def test_the_organization_ends_with_the_transaction(alice: Customer, bob: Customer, services: Services) -> None:
    """A connection returns to the pool without an organization, after a success and after a failure."""
    await alice.get("/v1/me")
    await bob.create_group()
    problem(await alice.post("/v1/projects", {"name": "default"}), 409, "name_taken")
    async with contextlib.AsyncExitStack() as stack:
        connections = [await stack.enter_async_context(services.engine.connect()) for _ in range(3)]
        for connection in connections:
            for query, expected in (
                ("SELECT NULLIF(current_setting('app.organization_id', true), '')", None),
                ("SELECT count(*) FROM projects", 0),
                ("SELECT current_user", "quorate_api"),
            ):
                assert (await connection.execute(text(query))).scalar_one() == expected


async def test_nobody_without_a_login(api: httpx2.AsyncClient, alice: Customer, owner: psycopg.Connection) -> None:
    own = await things_of(alice, owner) | {"server_id": "1", "token_id": "0" * 16, "incident_id": str(uuid.uuid4())}
    public = {"sign_up", "log_in", "get_health", "get_readiness", "receive_stripe_event"}
    for method, path, operation in OPERATIONS:
        if operation not in public and not path.startswith(STATUS):
            answer = await api.request(method, path.format(**own), json=BODIES.get(operation))
            problem(answer, 401, "not_authenticated")
