"""The service's status by region: judged hours of all groups together, sampled components, and incidents."""

from alembic import op

revision = "2026_11_25_status"
down_revision = "2026_11_25_payments"
branch_labels = None
depends_on = None

MEASURED = ("sla_region_hours", "status_hours", "status_regions")
TOLD = ("status_incidents", "status_updates")


def upgrade() -> None:
    # Sums of `sla_hours` over all groups of a region. The worker changes both in one transaction.
    op.execute(
        "CREATE TABLE sla_region_hours ("
        "  region text NOT NULL,"
        "  hour_s bigint NOT NULL CHECK (hour_s % 3600 = 0),"
        "  minutes bigint NOT NULL CHECK (minutes >= 0),"
        "  available_minutes bigint NOT NULL CHECK (available_minutes BETWEEN 0 AND minutes),"
        "  PRIMARY KEY (region, hour_s)"
        ")"
    )
    op.execute(
        "INSERT INTO sla_region_hours"
        " SELECT g.sla->>'region', h.hour_s, sum(h.minutes), sum(h.available_minutes)"
        " FROM sla_hours h JOIN groups g ON g.id = h.group_id GROUP BY 1, 2"
    )
    # A settled day has no hours any more. Its sum stands in the day's first hour, and reports are by day.
    op.execute(
        "INSERT INTO sla_region_hours AS known"
        " SELECT g.sla->>'region', d.day_s, sum(d.minutes), sum(d.available_minutes)"
        " FROM sla_days d JOIN groups g ON g.id = d.group_id GROUP BY 1, 2"
        " ON CONFLICT (region, hour_s) DO UPDATE SET minutes = known.minutes + excluded.minutes,"
        " available_minutes = known.available_minutes + excluded.available_minutes"
    )
    # Minutes of an hour in which the worker looked at a component, and those in which it worked.
    op.execute(
        "CREATE TABLE status_hours ("
        "  region text NOT NULL,"
        "  component text NOT NULL CHECK (component IN ('api', 'admission', 'usage')),"
        "  hour_s bigint NOT NULL CHECK (hour_s % 3600 = 0),"
        "  minutes bigint NOT NULL CHECK (minutes BETWEEN 0 AND 60),"
        "  good_minutes bigint NOT NULL CHECK (good_minutes BETWEEN 0 AND minutes),"
        "  last_minute_s bigint NOT NULL CHECK (last_minute_s % 60 = 0),"
        "  PRIMARY KEY (region, component, hour_s)"
        ")"
    )
    # The worker's newest look at each region.
    op.execute(
        "CREATE TABLE status_regions ("
        "  region text PRIMARY KEY,"
        "  sampled_at timestamp with time zone NOT NULL,"
        "  groups bigint NOT NULL CHECK (groups >= 0),"
        "  accepting bigint NOT NULL CHECK (accepting BETWEEN 0 AND groups),"
        "  admits boolean NOT NULL,"
        "  api_reached boolean NOT NULL,"
        "  usage_until timestamp with time zone"
        ")"
    )
    op.execute(
        "CREATE TABLE status_incidents ("
        "  id uuid PRIMARY KEY,"
        "  title text NOT NULL CHECK (title <> ''),"
        "  regions text[] NOT NULL CHECK (cardinality(regions) > 0),"
        "  components text[] NOT NULL CHECK (cardinality(components) > 0"
        "    AND components <@ ARRAY['api', 'admission', 'data_plane', 'usage']),"
        "  opened_at timestamp with time zone NOT NULL"
        ")"
    )
    op.execute(
        "CREATE TABLE status_updates ("
        "  id uuid PRIMARY KEY,"
        "  incident_id uuid NOT NULL REFERENCES status_incidents,"
        "  at timestamp with time zone NOT NULL,"
        "  phase text NOT NULL CHECK (phase IN ('investigating', 'identified', 'monitoring', 'resolved')),"
        "  impact text NOT NULL CHECK (impact IN ('degraded', 'outage')),"
        "  message text NOT NULL CHECK (message <> '')"
        ")"
    )
    op.execute("CREATE INDEX status_updates_incident ON status_updates (incident_id, id)")
    for table in TOLD:
        op.execute(
            f"CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}"
            " FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewriting()"
        )
        op.execute(f"GRANT SELECT, INSERT ON {table} TO quorate_api")
    for table in MEASURED:
        op.execute(f"GRANT SELECT ON {table} TO quorate_api")
        op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO quorate_worker")


def downgrade() -> None:
    for table in ("status_updates", "status_incidents", *MEASURED):
        op.execute(f"DROP TABLE {table}")
