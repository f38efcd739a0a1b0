"""The end of the last month that was closed for each organization, so that a pass looks only at those to close."""

from alembic import op

revision = "2026_11_25_closed_until"
down_revision = "2026_11_25_usage_days"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE organizations ADD COLUMN closed_until timestamptz")
    op.execute(
        "UPDATE organizations o SET closed_until ="
        " (SELECT max(period_end) FROM invoices i WHERE i.organization_id = o.organization_id)"
    )
    op.execute("GRANT UPDATE (closed_until) ON organizations TO quorate_worker")


def downgrade() -> None:
    op.execute("REVOKE UPDATE (closed_until) ON organizations FROM quorate_worker")
    op.execute("ALTER TABLE organizations DROP COLUMN closed_until")
