"""Usage windows in a partition for each day, so that old days go at once, and judged days of the SLA.

The worker calls the functions here, since it owns no table. Partitions refer to no other table: a new one would
lock `groups`. The worker takes each window's organization from there.
"""

from alembic import op

revision = "2026_11_25_usage_days"
down_revision = "2026_11_25_sla_hours"
branch_labels = None
depends_on = None

KEY = "group_id, server_id, incarnation, epoch, window_start_s"


def upgrade() -> None:
    _replace("PARTITION BY RANGE (window_start_s)")
    op.execute(
        "CREATE FUNCTION usage_day_name(day_s bigint) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$"
        " SELECT 'usage_windows_' || to_char(to_timestamp(day_s) AT TIME ZONE 'UTC', 'YYYYMMDD') $$"
    )
    op.execute(
        "CREATE FUNCTION ensure_usage_day(day_s bigint) RETURNS void LANGUAGE plpgsql STRICT"
        " SECURITY DEFINER SET search_path = public, pg_temp AS $$\n"
        "DECLARE name text := usage_day_name(day_s);\n"
        "BEGIN\n"
        "  IF day_s % 86400 <> 0 THEN RAISE 'no day begins at %', day_s; END IF;\n"
        "  IF to_regclass(name) IS NOT NULL THEN RETURN; END IF;\n"
        "  -- Its acquisition also makes tables visible that others have made meanwhile.\n"
        "  LOCK TABLE usage_windows IN SHARE UPDATE EXCLUSIVE MODE;\n"
        "  IF to_regclass(name) IS NOT NULL THEN RETURN; END IF;\n"
        "  -- Attached, and not created in place: readers and writers of other days go on.\n"
        "  EXECUTE format('CREATE TABLE %I (LIKE usage_windows INCLUDING CONSTRAINTS)', name);\n"
        "  EXECUTE format('ALTER TABLE usage_windows ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)',"
        " name, day_s, day_s + 86400);\n"
        "END $$"
    )
    op.execute(
        "CREATE FUNCTION usage_days() RETURNS SETOF bigint LANGUAGE sql STABLE"
        " SECURITY DEFINER SET search_path = public, pg_temp AS $$"
        " SELECT extract(epoch FROM to_date(right(relid::text, 8), 'YYYYMMDD'))::bigint"
        " FROM pg_partition_tree('usage_windows') WHERE isleaf ORDER BY 1 $$"
    )
    op.execute(
        "CREATE FUNCTION drop_usage_day(day_s bigint) RETURNS void LANGUAGE plpgsql STRICT"
        " SECURITY DEFINER SET search_path = public, pg_temp SET lock_timeout = '2s' AS $$\n"
        "BEGIN\n"
        "  IF day_s > extract(epoch FROM now()) - 3 * 86400 THEN RAISE 'the day at % is young', day_s; END IF;\n"
        "  IF EXISTS (SELECT FROM usage_dirty WHERE hour_s >= day_s AND hour_s < day_s + 86400)\n"
        "    THEN RAISE 'the day at % has hours that are not summed up', day_s; END IF;\n"
        "  EXECUTE format('DROP TABLE IF EXISTS %I', usage_day_name(day_s));\n"
        "END $$"
    )
    for function in ("ensure_usage_day(bigint)", "usage_days()", "drop_usage_day(bigint)"):
        op.execute(f"REVOKE ALL ON FUNCTION {function} FROM PUBLIC")
        op.execute(f"GRANT EXECUTE ON FUNCTION {function} TO quorate_worker")
    op.execute(
        "DO $$ DECLARE day bigint; BEGIN"
        " FOR day IN SELECT DISTINCT window_start_s / 86400 * 86400 FROM usage_windows_before LOOP"
        " PERFORM ensure_usage_day(day); END LOOP; END $$"
    )
    _move()
    op.execute(
        "CREATE TABLE sla_days ("
        "  organization_id uuid NOT NULL,"
        "  group_id uuid NOT NULL,"
        "  day_s bigint NOT NULL CHECK (day_s % 86400 = 0),"
        "  minutes bigint NOT NULL CHECK (minutes BETWEEN 0 AND 1440),"
        "  elapsed_ms bigint NOT NULL CHECK (elapsed_ms BETWEEN 0 AND 86400000),"
        "  active_ms bigint NOT NULL CHECK (active_ms BETWEEN 0 AND elapsed_ms),"
        "  available_minutes bigint NOT NULL CHECK (available_minutes BETWEEN 0 AND minutes),"
        "  unthrottled_minutes bigint NOT NULL CHECK (unthrottled_minutes BETWEEN 0 AND minutes),"
        "  timely_minutes bigint NOT NULL CHECK (timely_minutes BETWEEN 0 AND minutes),"
        "  latency_us jsonb NOT NULL,"
        "  PRIMARY KEY (group_id, day_s),"
        "  FOREIGN KEY (organization_id, group_id) REFERENCES groups (organization_id, id)"
        ")"
    )
    op.execute("CREATE INDEX sla_days_organization ON sla_days (organization_id)")
    op.execute("ALTER TABLE sla_days ENABLE ROW LEVEL SECURITY")
    op.execute(
        "CREATE POLICY own_organization ON sla_days TO quorate_api USING (organization_id = current_organization_id())"
    )
    op.execute("CREATE POLICY every_organization ON sla_days TO quorate_worker USING (true)")
    op.execute("GRANT SELECT ON sla_days TO quorate_api")
    op.execute("GRANT SELECT, INSERT, UPDATE ON sla_days TO quorate_worker")


def downgrade() -> None:
    op.execute("DROP TABLE sla_days")
    for function in ("drop_usage_day(bigint)", "usage_days()", "ensure_usage_day(bigint)", "usage_day_name(bigint)"):
        op.execute(f"DROP FUNCTION {function}")
    _replace("")
    op.execute(
        "ALTER TABLE usage_windows ADD FOREIGN KEY (organization_id, group_id) REFERENCES groups (organization_id, id)"
    )
    _move()


def _replace(partitions: str) -> None:
    """An empty table of the same shape, in the place of the one that is there."""
    op.execute("ALTER TABLE usage_windows RENAME TO usage_windows_before")
    for index in ("pkey", "time", "organization"):
        op.execute(f"ALTER INDEX usage_windows_{index} RENAME TO usage_windows_before_{index}")
    op.execute(f"CREATE TABLE usage_windows (LIKE usage_windows_before INCLUDING CONSTRAINTS) {partitions}")
    op.execute(f"ALTER TABLE usage_windows ADD PRIMARY KEY ({KEY})")
    op.execute("CREATE INDEX usage_windows_time ON usage_windows (group_id, window_start_s)")
    op.execute("CREATE INDEX usage_windows_organization ON usage_windows (organization_id, window_start_s)")
    op.execute("ALTER TABLE usage_windows ENABLE ROW LEVEL SECURITY")
    op.execute(
        "CREATE POLICY own_organization ON usage_windows TO quorate_api"
        " USING (organization_id = current_organization_id())"
    )
    op.execute("CREATE POLICY every_organization ON usage_windows TO quorate_worker USING (true)")
    op.execute("GRANT SELECT ON usage_windows TO quorate_api")
    op.execute("GRANT SELECT, INSERT, UPDATE ON usage_windows TO quorate_worker")


def _move() -> None:
    op.execute("INSERT INTO usage_windows SELECT * FROM usage_windows_before")
    op.execute("DROP TABLE usage_windows_before")
