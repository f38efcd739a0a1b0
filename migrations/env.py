"""Runs the migrations as the schema's owner, in one transaction, one process at a time."""

from alembic import context
from sqlalchemy import create_engine, pool, text

ADVISORY_LOCK = 0x71756F72617465  # "quorate": concurrent `migrate` commands take turns

engine = create_engine(context.config.attributes["database_url"], poolclass=pool.NullPool)
with engine.connect() as connection, connection.begin():
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": ADVISORY_LOCK})
    context.configure(connection=connection, target_metadata=None, transaction_per_migration=False)
    context.run_migrations()
engine.dispose()
