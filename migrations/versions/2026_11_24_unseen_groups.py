"""Groups that changed, and whose present state the coordinator did not tell in a usable way, are asked for again."""

from alembic import op

revision = "2026_11_24_unseen_groups"
down_revision = "2026_11_24_usage_totals"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE groups ADD COLUMN unseen boolean DEFAULT false NOT NULL")
    op.execute("CREATE INDEX groups_unseen ON groups (id) WHERE unseen")


def downgrade() -> None:
    op.execute("ALTER TABLE groups DROP COLUMN unseen")
