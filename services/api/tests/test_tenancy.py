"""No caller sees another organization, row by row, and keys see no other project. `test_access.py` has the matrix."""

import contextlib
from itertools import product

import psycopg
import pytest
from sqlalchemy import text

from quorate_api.database.tables import OWNED
from quorate_api.http.services import Services
from support.access import things_of
from support.customer import Customer, bearer, new_key, problem


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
