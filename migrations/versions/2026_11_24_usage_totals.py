"""Totals of usage by hour and day, so that a query does not sum up a group's whole life."""

from alembic import op

revision = "2026_11_24_usage_totals"
down_revision = "2026_11_24_document_numbers"
branch_labels = None
depends_on = None

OWNED = ("usage_log_days", "usage_hours", "usage_days", "usage_dirty")


def upgrade() -> None:
    # The greatest counters of a log in each day.
    op.execute(
        "CREATE TABLE usage_log_days ("
        "  organization_id uuid NOT NULL,"
        "  group_id uuid NOT NULL,"
        "  log_epoch bigint NOT NULL CHECK (log_epoch >= 0),"
        "  day_s bigint NOT NULL CHECK (day_s % 86400 = 0),"
        "  committed_entries bigint NOT NULL CHECK (committed_entries >= 0),"
        "  committed_bytes bigint NOT NULL CHECK (committed_bytes >= 0),"
        "  PRIMARY KEY (group_id, log_epoch, day_s),"
        "  FOREIGN KEY (organization_id, group_id) REFERENCES groups (organization_id, id)"
        ")"
    )
    # Sums over an hour's minutes, and over a day's hours that have such sums.
    for table, start, seconds in (("usage_hours", "hour_s", 3_600), ("usage_days", "day_s", 86_400)):
        op.execute(
            f"CREATE TABLE {table} ("
            "  organization_id uuid NOT NULL,"
            "  group_id uuid NOT NULL,"
            f"  {start} bigint NOT NULL CHECK ({start} % {seconds} = 0),"
            "  read_entries bigint NOT NULL CHECK (read_entries >= 0),"
            "  stored_byte_minutes bigint NOT NULL CHECK (stored_byte_minutes >= 0),"
            f"  PRIMARY KEY (group_id, {start}),"
            "  FOREIGN KEY (organization_id, group_id) REFERENCES groups (organization_id, id)"
            ")"
        )
    # Hours whose windows have changed since they were summed up.
    op.execute(
        "CREATE TABLE usage_dirty ("
        "  organization_id uuid NOT NULL,"
        "  group_id uuid NOT NULL,"
        "  hour_s bigint NOT NULL CHECK (hour_s % 3600 = 0),"
        "  PRIMARY KEY (group_id, hour_s),"
        "  FOREIGN KEY (organization_id, group_id) REFERENCES groups (organization_id, id)"
        ")"
    )
    op.execute("CREATE INDEX usage_dirty_oldest ON usage_dirty (hour_s)")
    for table in OWNED:
        op.execute(f"CREATE INDEX {table}_organization ON {table} (organization_id)")
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(
            f"CREATE POLICY own_organization ON {table} TO quorate_api"
            " USING (organization_id = current_organization_id())"
        )
        op.execute(f"CREATE POLICY every_organization ON {table} TO quorate_worker USING (true)")
        op.execute(f"GRANT SELECT ON {table} TO quorate_api")
        op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO quorate_worker")
    op.execute("CREATE INDEX usage_windows_organization ON usage_windows (organization_id, window_start_s)")
    op.execute(
        "INSERT INTO usage_log_days SELECT organization_id, group_id, log_epoch, window_start_s / 86400 * 86400,"
        " max(committed_entries), max(committed_bytes) FROM usage_windows GROUP BY 1, 2, 3, 4"
    )
    # The worker sums them up.
    op.execute(
        "INSERT INTO usage_dirty SELECT DISTINCT organization_id, group_id, window_start_s / 3600 * 3600"
        " FROM usage_windows"
    )


def downgrade() -> None:
    for table in OWNED:
        op.execute(f"DROP TABLE {table}")
    op.execute("DROP INDEX usage_windows_organization")
