"""Hours of usage windows that are over, packed into one row a group."""

from alembic import op

revision = "2026_11_28_packed_hours"
down_revision = "2026_11_28_settled_usage"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # `first_active_s`, `last_active_s`: the first and the last minute in which a head was active.
    op.execute(
        "CREATE TABLE packed_hours ("
        "  organization_id uuid NOT NULL,"
        "  group_id uuid NOT NULL,"
        "  hour_s bigint NOT NULL CHECK (hour_s % 3600 = 0),"
        "  first_active_s bigint CHECK (first_active_s BETWEEN hour_s AND last_active_s),"
        "  last_active_s bigint CHECK (last_active_s BETWEEN first_active_s AND hour_s + 3540),"
        "  windows bytea NOT NULL,"
        "  PRIMARY KEY (group_id, hour_s),"
        "  FOREIGN KEY (organization_id, group_id) REFERENCES groups (organization_id, id)"
        ")"
    )
    # It is compressed already.
    op.execute("ALTER TABLE packed_hours ALTER COLUMN windows SET STORAGE EXTERNAL")
    op.execute("CREATE INDEX packed_hours_organization ON packed_hours (organization_id)")
    op.execute("CREATE INDEX packed_hours_time ON packed_hours (hour_s)")
    op.execute("ALTER TABLE packed_hours ENABLE ROW LEVEL SECURITY")
    op.execute(
        "CREATE POLICY own_organization ON packed_hours TO quorate_api"
        " USING (organization_id = current_organization_id())"
    )
    op.execute("CREATE POLICY every_organization ON packed_hours TO quorate_worker USING (true)")
    op.execute("GRANT SELECT ON packed_hours TO quorate_api")
    op.execute("GRANT SELECT, INSERT, DELETE ON packed_hours TO quorate_worker")
    op.execute("GRANT DELETE ON usage_windows TO quorate_worker")
    # Whether the hour's windows are packed as they were summed up.
    op.execute("ALTER TABLE usage_hours ADD COLUMN packed boolean NOT NULL DEFAULT false")
    op.execute("CREATE INDEX usage_hours_unpacked ON usage_hours (hour_s) WHERE NOT packed")


def downgrade() -> None:
    # The minutes that are packed are lost. Sums and judgements of them stay.
    op.execute("ALTER TABLE usage_hours DROP COLUMN packed")
    op.execute("REVOKE DELETE ON usage_windows FROM quorate_worker")
    op.execute("DROP TABLE packed_hours")
