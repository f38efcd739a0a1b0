"""Bytes that readers were sent, beside the entries."""

from alembic import op

revision = "2026_11_28_egress"
down_revision = "2026_11_28_probers"
branch_labels = None
depends_on = None

SUMMED = ("usage_hours", "usage_days", "settled_totals")
KINDS = ("appends", "reads", "egress", "storage")
CORRECTED = ("sla_minutes", "sla_durability", "sla_order")


def upgrade() -> None:
    for table in SUMMED:
        # Bytes that were read before were never billed, and are not now.
        op.execute(f"ALTER TABLE {table} ADD COLUMN read_bytes bigint NOT NULL DEFAULT 0 CHECK (read_bytes >= 0)")
    _allow(KINDS)


def downgrade() -> None:
    # Fails where egress was billed or corrected: documents do not change.
    _allow(tuple(kind for kind in KINDS if kind != "egress"))
    for table in SUMMED:
        op.execute(f"ALTER TABLE {table} DROP COLUMN read_bytes")


def _allow(kinds: tuple[str, ...]) -> None:
    allowed = {"corrections": (*kinds, *CORRECTED), "invoice_lines": ("reservation", *kinds, "sla_credit")}
    for table, names in allowed.items():
        listed = ", ".join(f"'{name}'" for name in names)
        op.execute(f"ALTER TABLE {table} DROP CONSTRAINT {table}_kind_check")
        op.execute(f"ALTER TABLE {table} ADD CONSTRAINT {table}_kind_check CHECK (kind IN ({listed}))")
