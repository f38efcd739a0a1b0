"""Projects can be deleted, and an organization has keys of its own."""

from alembic import op

revision = "2026_11_22_terraform"
down_revision = "2026_11_21_logs"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # A deleted project stays, because invoices and logs name it. Its name is free again.
    op.execute("ALTER TABLE projects ADD COLUMN deleted_at timestamp with time zone")
    op.execute("ALTER TABLE projects DROP CONSTRAINT projects_organization_id_name_key")
    op.execute("CREATE UNIQUE INDEX projects_name ON projects (organization_id, name) WHERE deleted_at IS NULL")
    op.execute("GRANT UPDATE (deleted_at) ON projects TO quorate_api")
    op.execute("ALTER TABLE api_keys ALTER COLUMN project_id DROP NOT NULL")


def downgrade() -> None:
    raise RuntimeError("Keys without a project fit no older schema; restore a backup instead.")
