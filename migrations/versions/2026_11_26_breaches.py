"""Corrections of the SLA's clauses that telemetry does not measure: durability and order."""

from alembic import op

revision = "2026_11_26_breaches"
down_revision = "2026_11_25_judged_within_sla"
branch_labels = None
depends_on = None

_OF_USE, _OF_MINUTES = "'appends', 'reads', 'storage'", "'sla_minutes', 'sla_durability', 'sla_order'"


def upgrade() -> None:
    op.execute(
        "ALTER TABLE corrections DROP CONSTRAINT corrections_kind_check,"
        f" ADD CONSTRAINT corrections_kind_check CHECK (kind IN ({_OF_USE}, {_OF_MINUTES})),"
        " DROP CONSTRAINT corrections_say_what,"
        f" ADD CONSTRAINT corrections_say_what CHECK (CASE WHEN kind IN ({_OF_MINUTES})"
        "   THEN num_nonnulls(start_s, end_s) = 2 AND start_s < end_s AND num_nonnulls(quantity, day) = 0"
        "   ELSE num_nonnulls(quantity, day) = 2 AND num_nonnulls(start_s, end_s) = 0 END)"
    )


def downgrade() -> None:
    raise RuntimeError("Corrections may be of durability and order, and are never deleted; restore a backup instead.")
