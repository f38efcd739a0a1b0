"""The schema: its snapshot, its description in Python, and the rules that it enforces."""

import uuid

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, make_url

from quorate_api.database import engine as database
from quorate_api.database.migrate import snapshot, upgrade
from quorate_api.database.tables import OWNED, metadata
from quorate_api.embedded import postgres
from support.customer import Customer

MIGRATIONS = database.migrations_dir(None)


def test_the_snapshot_is_what_the_migrations_produce(owner_url: str) -> None:
    produced = snapshot(owner_url, postgres.binaries() / "pg_dump")
    assert (MIGRATIONS / "schema.sql").read_text() == produced, "run `quorate-api schema-snapshot`"


def test_migrating_again_changes_nothing(owner_url: str) -> None:
    before = snapshot(owner_url, postgres.binaries() / "pg_dump")
    upgrade(owner_url, MIGRATIONS)
    assert snapshot(owner_url, postgres.binaries() / "pg_dump") == before


def test_the_processes_expect_the_newest_revision() -> None:
    assert ScriptDirectory(str(MIGRATIONS)).get_current_head() == database.SCHEMA_REVISION


def test_tables_agree(owner_url: str) -> None:
    """Same tables, columns, types and nullability. Indexes and constraints are the migrations' own."""
    engine = create_engine(make_url(owner_url).set(drivername="postgresql+psycopg"))
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        differences = [
            difference
            for difference in compare_metadata(context, metadata)
            if isinstance(difference, list)
            or difference[0] in ("add_table", "remove_table", "add_column", "remove_column")
        ]
    engine.dispose()
    assert [item for item in differences if "alembic_version" not in str(item)] == []


def test_every_owned_table_has_row_level_security(owner: psycopg.Connection) -> None:
    found = owner.execute(
        "SELECT relname FROM pg_class c WHERE relrowsecurity"
        " AND (SELECT count(*) FROM pg_policy WHERE polrelid = c.oid) = 2"
    ).fetchall()
    with_column = owner.execute(
        "SELECT table_name FROM information_schema.columns WHERE column_name = 'organization_id'"
        " AND table_schema = 'public'"
    ).fetchall()
    assert {row[0] for row in found} == {row[0] for row in with_column} == OWNED


def test_the_processes_roles_own_nothing(owner: psycopg.Connection) -> None:
    for role in (database.API_ROLE, database.WORKER_ROLE):
        row = owner.execute(
            "SELECT rolsuper, rolbypassrls, rolcreatedb, rolcreaterole, rolcanlogin FROM pg_roles WHERE rolname = %s",
            (role,),
        ).fetchone()
        assert row == (False, False, False, False, False)
        owned = owner.execute(
            "SELECT count(*) FROM pg_class WHERE relowner = (SELECT oid FROM pg_roles WHERE rolname = %s)", (role,)
        ).fetchone()
        assert owned == (0,)


def insert_invoice(
    connection: psycopg.Connection, organization_id: str, amount: int, ledger: list[int], tax: int = 0
) -> uuid.UUID:
    invoice_id = uuid.uuid4()
    with connection.transaction():
        connection.execute(
            "INSERT INTO invoices VALUES (%s, %s, 'invoice', 1, 'INV-000001', '2026-01-01Z', '2026-02-01Z', 'USD', %s,"
            " NULL, now(), '2026', %s)",
            (invoice_id, organization_id, amount, tax),
        )
        for number, part in enumerate(ledger):
            connection.execute(
                "INSERT INTO ledger_entries VALUES (%s, %s, %s, %s, now())",
                (organization_id, invoice_id, f"account {number}", part),
            )
    return invoice_id


async def test_the_database_refuses_books_that_do_not_add_up(alice: Customer, owner: psycopg.Connection) -> None:
    with pytest.raises(psycopg.errors.RaiseException, match="do not add up to zero"):
        insert_invoice(owner, alice.organization_id, 0, [100, -99])
    with pytest.raises(psycopg.errors.RaiseException, match="do not add up to its total"):
        insert_invoice(owner, alice.organization_id, 5, [5, -5])
    with pytest.raises(psycopg.errors.RaiseException, match="do not add up to its tax"):
        insert_invoice(owner, alice.organization_id, 5, [5, -5], tax=5)
    insert_invoice(owner, alice.organization_id, 0, [100, -60, -40])
    with pytest.raises(psycopg.errors.UniqueViolation):
        insert_invoice(owner, alice.organization_id, 0, [])


async def test_issued_documents_are_immutable(alice: Customer, owner: psycopg.Connection) -> None:
    insert_invoice(owner, alice.organization_id, 0, [1, -1])
    for table in ("invoices", "invoice_lines", "invoice_taxes", "ledger_entries"):
        for statement in (f"UPDATE {table} SET organization_id = organization_id", f"DELETE FROM {table}"):
            with pytest.raises(psycopg.errors.RaiseException, match="immutable"):
                owner.execute(statement)
