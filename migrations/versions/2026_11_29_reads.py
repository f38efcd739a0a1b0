"""Reads within the reservation, by which the SLA is judged."""

from alembic import op

revision = "2026_11_29_reads"
down_revision = "2026_11_28_commitments"
branch_labels = None
depends_on = None

COUNTS = ("owed_read_entries", "late_read_entries")
TABLES = ("usage_windows", "sla_bad_minutes")


def upgrade() -> None:
    for table in TABLES:
        for count in COUNTS:
            op.execute(f"ALTER TABLE {table} ADD COLUMN {count} bigint NOT NULL DEFAULT 0 CHECK ({count} >= 0)")


def downgrade() -> None:
    for table in TABLES:
        for count in COUNTS:
            op.execute(f"ALTER TABLE {table} DROP COLUMN {count}")
