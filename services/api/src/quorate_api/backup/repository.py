"""The server's side of the backup: the slot that keeps the log while nobody receives it."""

import psycopg

SLOT = "quorate_backup"


def create_slot(database_url: str) -> None:
    """Repeating it changes nothing."""
    with psycopg.connect(database_url, autocommit=True, connect_timeout=10) as connection:
        known = connection.execute("SELECT 1 FROM pg_replication_slots WHERE slot_name = %s", (SLOT,)).fetchone()
        if known is None:
            connection.execute("SELECT pg_create_physical_replication_slot(%s, true)", (SLOT,))
