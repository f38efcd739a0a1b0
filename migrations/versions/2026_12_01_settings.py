"""Names of projects and groups that can change, and groups that are protected from deletion."""

from alembic import op

revision = "2026_12_01_settings"
down_revision = "2026_11_30_secrets"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE groups ADD COLUMN deletion_protection boolean NOT NULL DEFAULT false")
    op.execute("GRANT UPDATE (name) ON projects TO quorate_api")


def downgrade() -> None:
    op.execute("REVOKE UPDATE (name) ON projects FROM quorate_api")
    op.execute("ALTER TABLE groups DROP COLUMN deletion_protection")
