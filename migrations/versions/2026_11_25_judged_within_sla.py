"""The part of usage windows that the SLA is judged by: owed entries, their latency, and a head's times."""

from alembic import op

revision = "2026_11_25_judged_within_sla"
down_revision = "2026_11_25_status"
branch_labels = None
depends_on = None

_COUNTERS = ("within_sla_entries", "from_ms", "to_ms")


def upgrade() -> None:
    for name in _COUNTERS:
        op.execute(f"ALTER TABLE usage_windows ADD COLUMN {name} bigint NOT NULL DEFAULT 0")
        op.execute(f"ALTER TABLE usage_windows ALTER COLUMN {name} DROP DEFAULT")
    op.execute("ALTER TABLE usage_windows ADD COLUMN judged_latency_us jsonb")
    op.execute("ALTER TABLE sla_bad_minutes ADD COLUMN within_sla_entries bigint NOT NULL DEFAULT 0")
    op.execute("ALTER TABLE sla_bad_minutes ALTER COLUMN within_sla_entries DROP DEFAULT")


def downgrade() -> None:
    op.execute("ALTER TABLE sla_bad_minutes DROP COLUMN within_sla_entries")
    op.execute("ALTER TABLE usage_windows DROP COLUMN judged_latency_us")
    for name in reversed(_COUNTERS):
        op.execute(f"ALTER TABLE usage_windows DROP COLUMN {name}")
