"""Promises of SLAs: availability as groups were placed, and the bound on latency in each bad minute."""

from alembic import op

revision = "2026_11_26_promises"
down_revision = "2026_11_26_breaches"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        "ALTER TABLE groups ADD COLUMN availability_ppm bigint NOT NULL DEFAULT 999500"
        " CHECK (availability_ppm BETWEEN 0 AND 1000000)"
    )
    # Earlier minutes were judged by the bounds of their time: 50 ms, and 10 ms for groups in memory.
    op.execute("ALTER TABLE sla_bad_minutes ADD COLUMN target_us bigint NOT NULL DEFAULT 50000 CHECK (target_us > 0)")
    op.execute(
        "UPDATE sla_bad_minutes SET target_us = 10000 FROM groups"
        " WHERE groups.id = group_id AND groups.sla ->> 'durability' = 'in_memory'"
    )
    op.execute("ALTER TABLE sla_bad_minutes ALTER COLUMN target_us DROP DEFAULT")


def downgrade() -> None:
    op.execute("ALTER TABLE sla_bad_minutes DROP COLUMN target_us")
    op.execute("ALTER TABLE groups DROP COLUMN availability_ppm")
