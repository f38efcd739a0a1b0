"""Judged hours of each group's SLA, and its bad minutes, so that a report does not judge a month of windows."""

from alembic import op

revision = "2026_11_25_sla_hours"
down_revision = "2026_11_24_unseen_groups"
branch_labels = None
depends_on = None

OWNED = ("sla_hours", "sla_bad_minutes")


def upgrade() -> None:
    # An hour's minutes, judged: their number, their time, and the good ones of each clause.
    op.execute(
        "CREATE TABLE sla_hours ("
        "  organization_id uuid NOT NULL,"
        "  group_id uuid NOT NULL,"
        "  hour_s bigint NOT NULL CHECK (hour_s % 3600 = 0),"
        "  minutes bigint NOT NULL CHECK (minutes BETWEEN 0 AND 60),"
        "  elapsed_ms bigint NOT NULL CHECK (elapsed_ms BETWEEN 0 AND 3600000),"
        "  active_ms bigint NOT NULL CHECK (active_ms BETWEEN 0 AND elapsed_ms),"
        "  available_minutes bigint NOT NULL CHECK (available_minutes BETWEEN 0 AND minutes),"
        "  unthrottled_minutes bigint NOT NULL CHECK (unthrottled_minutes BETWEEN 0 AND minutes),"
        "  timely_minutes bigint NOT NULL CHECK (timely_minutes BETWEEN 0 AND minutes),"
        "  latency_us jsonb NOT NULL,"
        "  PRIMARY KEY (group_id, hour_s),"
        "  FOREIGN KEY (organization_id, group_id) REFERENCES groups (organization_id, id)"
        ")"
    )
    # The evidence: minutes of those hours that missed a clause.
    op.execute(
        "CREATE TABLE sla_bad_minutes ("
        "  organization_id uuid NOT NULL,"
        "  group_id uuid NOT NULL,"
        "  start_s bigint NOT NULL CHECK (start_s % 60 = 0),"
        "  elapsed_ms bigint NOT NULL CHECK (elapsed_ms BETWEEN 0 AND 60000),"
        "  active_ms bigint NOT NULL CHECK (active_ms BETWEEN 0 AND elapsed_ms),"
        "  measured boolean NOT NULL,"
        "  throttled_within_sla_entries bigint NOT NULL CHECK (throttled_within_sla_entries >= 0),"
        "  p99_us bigint CHECK (p99_us >= 0),"
        "  PRIMARY KEY (group_id, start_s),"
        "  FOREIGN KEY (organization_id, group_id) REFERENCES groups (organization_id, id)"
        ")"
    )
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
    # Days are settled by the time of their hours.
    for table in ("sla_hours", "usage_hours"):
        op.execute(f"CREATE INDEX {table}_time ON {table} (hour_s)")


def downgrade() -> None:
    op.execute("DROP INDEX usage_hours_time")
    for table in OWNED:
        op.execute(f"DROP TABLE {table}")
