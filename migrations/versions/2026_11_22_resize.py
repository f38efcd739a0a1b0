"""Groups are resized. Their former SLAs stay on record, so that each time is billed and judged by its own."""

from alembic import op

revision = "2026_11_22_resize"
down_revision = "2026_11_22_terraform"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # A requested resize, until its outcome is known.
    op.execute("ALTER TABLE groups ADD COLUMN resize jsonb")
    op.execute(
        "ALTER TABLE groups ADD COLUMN sla_revision bigint DEFAULT 1 NOT NULL"
        " CONSTRAINT groups_sla_revision_check CHECK (sla_revision >= 1)"
    )
    op.execute("CREATE INDEX groups_resizing ON groups (id) WHERE resize IS NOT NULL")
    # A group's SLA until a time. It begins at the end of the former one, the first at the group's start.
    op.execute(
        "CREATE TABLE former_slas ("
        "  organization_id uuid NOT NULL,"
        "  group_id uuid NOT NULL,"
        "  revision bigint NOT NULL CHECK (revision >= 1),"
        "  sla jsonb NOT NULL,"
        "  hourly_micros bigint NOT NULL CHECK (hourly_micros >= 0),"
        "  until timestamp with time zone NOT NULL,"
        "  PRIMARY KEY (group_id, revision),"
        "  FOREIGN KEY (organization_id, group_id) REFERENCES groups (organization_id, id)"
        ")"
    )
    op.execute("ALTER TABLE former_slas ENABLE ROW LEVEL SECURITY")
    op.execute(
        "CREATE POLICY own_organization ON former_slas TO quorate_api"
        " USING (organization_id = current_organization_id())"
    )
    op.execute("CREATE POLICY every_organization ON former_slas TO quorate_worker USING (true)")
    op.execute("GRANT SELECT, INSERT ON former_slas TO quorate_api, quorate_worker")


def downgrade() -> None:
    raise RuntimeError("No older schema has former SLAs; restore a backup instead.")
