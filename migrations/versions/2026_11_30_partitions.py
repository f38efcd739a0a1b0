"""Groups with partitions, and the checkpoints of their consumers."""

from alembic import op

revision = "2026_11_30_partitions"
down_revision = "2026_11_30_guarantees"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        "ALTER TABLE groups"
        "  ADD COLUMN partition_of uuid REFERENCES groups,"
        "  ADD COLUMN partition bigint CHECK (partition BETWEEN 1 AND 255),"
        "  ADD CONSTRAINT groups_partition_has_a_number CHECK ((partition_of IS NULL) = (partition IS NULL))"
    )
    op.execute(
        "CREATE UNIQUE INDEX groups_partitions ON groups (partition_of, partition) WHERE partition_of IS NOT NULL"
    )
    op.execute(
        "CREATE TABLE partitioned_groups ("
        "  group_id uuid PRIMARY KEY REFERENCES groups ON DELETE CASCADE,"
        "  organization_id uuid NOT NULL REFERENCES organizations,"
        "  revision bigint NOT NULL CHECK (revision >= 0),"
        "  sla jsonb,"
        "  price jsonb,"
        "  layout bigint NOT NULL CHECK (layout >= 0),"
        "  in_use bigint NOT NULL CHECK (in_use BETWEEN 1 AND 256),"
        "  changes jsonb NOT NULL,"
        "  wanted jsonb,"
        "  requested_at timestamptz NOT NULL"
        ")"
    )
    op.execute("CREATE INDEX partitioned_groups_organization ON partitioned_groups (organization_id)")
    op.execute(
        "CREATE INDEX partitioned_groups_unsettled ON partitioned_groups (requested_at) WHERE wanted IS NOT NULL"
    )
    op.execute(
        "CREATE TABLE checkpoints ("
        "  group_id uuid NOT NULL REFERENCES groups ON DELETE CASCADE,"
        "  consumer text NOT NULL CHECK (length(consumer) BETWEEN 1 AND 100),"
        "  partition bigint NOT NULL CHECK (partition BETWEEN 0 AND 255),"
        "  organization_id uuid NOT NULL REFERENCES organizations,"
        "  next_offset bigint NOT NULL CHECK (next_offset >= 0),"
        "  updated_at timestamptz NOT NULL,"
        "  PRIMARY KEY (group_id, consumer, partition)"
        ")"
    )
    op.execute("CREATE INDEX checkpoints_organization ON checkpoints (organization_id)")
    for table in ("partitioned_groups", "checkpoints"):
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(
            f"CREATE POLICY own_organization ON {table} TO quorate_api"
            " USING (organization_id = current_organization_id())"
        )
        op.execute(f"CREATE POLICY every_organization ON {table} TO quorate_worker USING (true)")
        op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO quorate_api")
    op.execute("GRANT SELECT, UPDATE, DELETE ON partitioned_groups TO quorate_worker")


def downgrade() -> None:
    # Fails where a group has partitions: its other logs would be groups that nobody asked for.
    op.execute("DROP TABLE checkpoints")
    op.execute("DROP TABLE partitioned_groups")
    op.execute("ALTER TABLE groups DROP COLUMN partition, DROP COLUMN partition_of")
