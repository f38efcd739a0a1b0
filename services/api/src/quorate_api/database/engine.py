"""Connections to PostgreSQL, acting as a role that owns nothing."""

import select
from pathlib import Path
from typing import Any

from pydantic_core import from_json
from sqlalchemy import event, make_url, text
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from quorate_api import limits

API_ROLE = "quorate_api"
WORKER_ROLE = "quorate_worker"
SCHEMA_REVISION = "2026_12_01_requests"


NO_ROLE = "none"  # whoever connects: the tables' owner


def create(database_url: str, role: str) -> AsyncEngine:
    """An engine whose every connection acts as `role`, so that row-level security applies to it."""
    engine = create_async_engine(
        make_url(database_url).set(drivername="postgresql+psycopg"),
        pool_size=limits.DATABASE_POOL_SIZE,
        max_overflow=limits.DATABASE_POOL_OVERFLOW,
        pool_timeout=limits.DATABASE_POOL_WAIT_S,
        hide_parameters=True,  # errors are logged, and values may be secrets
        json_deserializer=from_json,  # bills of large customers read thousands of values
        connect_args={
            "connect_timeout": 5,
            "application_name": role,
            "options": f"-c statement_timeout={limits.STATEMENT_TIMEOUT_MS} -c timezone=UTC"
            " -c idle_in_transaction_session_timeout=60000"
            # Statements here are short, and starting workers for them takes longer than they save.
            " -c max_parallel_workers_per_gather=0",
        },
    )

    @event.listens_for(engine.sync_engine, "connect")
    def act_as_role(connection: Any, _record: object) -> None:
        cursor = connection.cursor()
        cursor.execute(f"SET ROLE {role}")
        cursor.close()
        connection.commit()

    @event.listens_for(engine.sync_engine, "checkout")
    def replace_closed(_connection: Any, record: Any, _proxy: object) -> None:
        # A server that closed the connection said so. Asking it each time costs every request a round trip.
        if record.driver_connection.closed or _has_input(record.driver_connection.fileno()):
            raise DisconnectionError("PostgreSQL closed the connection")

    return engine


def _has_input(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


async def schema_problem(connection: AsyncConnection, role: str) -> str | None:
    """The reason why the database cannot be used, or None if it can."""
    found = (await connection.execute(text("SELECT to_regclass('alembic_version') IS NOT NULL"))).scalar_one()
    revision = (
        (await connection.execute(text("SELECT version_num FROM alembic_version"))).scalar_one_or_none()
        if found
        else None
    )
    if revision != SCHEMA_REVISION:
        return f"its schema is at {revision or 'nothing'}, not at {SCHEMA_REVISION}: run `quorate-api migrate`"
    powers = (
        await connection.execute(text("SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"))
    ).scalar_one()
    assert not powers, f"role {role} must not bypass row-level security"
    return None


def migrations_dir(configured: Path | None) -> Path:
    """The folder `migrations/`: the configured one, else that of the repository around this package."""
    if configured is not None:
        return configured
    for parent in Path(__file__).resolve().parents:
        if (parent / "migrations" / "alembic.ini").is_file():
            return parent / "migrations"
    raise FileNotFoundError("The folder migrations/ was not found; set QUORATE_MIGRATIONS_DIR.")
