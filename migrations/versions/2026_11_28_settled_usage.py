"""Running totals of usage that is final, and of billed quantities, so that no query sums up a group's whole life."""

from alembic import op

revision = "2026_11_28_settled_usage"
down_revision = "2026_11_27_caps"
branch_labels = None
depends_on = None

OWNED = ("settled_totals", "settled_logs")
# Days before it are final: their windows were removed.
SETTLED_S = (
    "(SELECT coalesce(min(usage_days), (extract(epoch FROM now())::bigint / 86400 - 10) * 86400) FROM usage_days())"
)


def upgrade() -> None:
    # Each is the begin of a day, and days before it are final. The last one and the ends of months stay.
    op.execute("CREATE TABLE settled_times (until_s bigint PRIMARY KEY CHECK (until_s % 86400 = 0))")
    op.execute("GRANT SELECT ON settled_times TO quorate_api")
    op.execute("GRANT SELECT, INSERT, DELETE ON settled_times TO quorate_worker")
    # Totals since the group, or its log, began.
    op.execute(
        "CREATE TABLE settled_totals ("
        "  organization_id uuid NOT NULL,"
        "  group_id uuid NOT NULL,"
        "  until_s bigint NOT NULL REFERENCES settled_times ON DELETE CASCADE,"
        "  read_entries bigint NOT NULL CHECK (read_entries >= 0),"
        "  stored_byte_minutes bigint NOT NULL CHECK (stored_byte_minutes >= 0),"
        "  PRIMARY KEY (group_id, until_s),"
        "  FOREIGN KEY (organization_id, group_id) REFERENCES groups (organization_id, id)"
        ")"
    )
    op.execute(
        "CREATE TABLE settled_logs ("
        "  organization_id uuid NOT NULL,"
        "  group_id uuid NOT NULL,"
        "  log_epoch bigint NOT NULL CHECK (log_epoch >= 0),"
        "  until_s bigint NOT NULL REFERENCES settled_times ON DELETE CASCADE,"
        "  committed_entries bigint NOT NULL CHECK (committed_entries >= 0),"
        "  committed_bytes bigint NOT NULL CHECK (committed_bytes >= 0),"
        "  PRIMARY KEY (group_id, log_epoch, until_s),"
        "  FOREIGN KEY (organization_id, group_id) REFERENCES groups (organization_id, id)"
        ")"
    )
    for table in OWNED:
        op.execute(f"CREATE INDEX {table}_organization ON {table} (organization_id, until_s)")
        op.execute(f"CREATE INDEX {table}_time ON {table} (until_s)")
        _isolate(table)
        op.execute(f"GRANT SELECT, INSERT, DELETE ON {table} TO quorate_worker")
    for table in ("usage_days", "usage_log_days"):
        op.execute(f"DROP INDEX {table}_organization")
        op.execute(f"CREATE INDEX {table}_organization ON {table} (organization_id, day_s)")
        # The worker settles the days of all organizations. Rows come in the order of days.
        op.execute(f"CREATE INDEX {table}_time ON {table} USING brin (day_s)")
    _settle_history()
    op.execute(
        "CREATE TABLE billed_quantities ("
        "  organization_id uuid NOT NULL,"
        "  group_id uuid NOT NULL,"
        "  kind text NOT NULL,"
        "  quantity bigint NOT NULL CHECK (quantity >= 0),"
        "  PRIMARY KEY (group_id, kind),"
        "  FOREIGN KEY (organization_id, group_id) REFERENCES groups (organization_id, id)"
        ")"
    )
    op.execute("CREATE INDEX billed_quantities_organization ON billed_quantities (organization_id)")
    _isolate("billed_quantities")
    op.execute("GRANT SELECT ON billed_quantities TO quorate_worker")
    of_lines = "kind <> 'sla_credit' AND correction_id IS NULL"
    # With the right of its owner: nobody else may change what was billed.
    op.execute(
        "CREATE FUNCTION add_billed_quantities() RETURNS trigger LANGUAGE plpgsql"
        " SECURITY DEFINER SET search_path = public, pg_temp AS $$\n"
        "BEGIN\n"
        "  INSERT INTO billed_quantities AS b\n"
        "    SELECT organization_id, group_id, kind, sum(quantity) FROM added\n"
        f"    WHERE {of_lines} GROUP BY 1, 2, 3 ORDER BY 2, 3\n"
        "    ON CONFLICT (group_id, kind) DO UPDATE SET quantity = b.quantity + excluded.quantity;\n"
        "  RETURN NULL;\n"
        "END $$"
    )
    op.execute(
        "CREATE TRIGGER counted AFTER INSERT ON invoice_lines REFERENCING NEW TABLE AS added"
        " FOR EACH STATEMENT EXECUTE FUNCTION add_billed_quantities()"
    )
    op.execute(
        "INSERT INTO billed_quantities SELECT organization_id, group_id, kind, sum(quantity) FROM invoice_lines"
        f" WHERE {of_lines} GROUP BY 1, 2, 3"
    )


def _isolate(table: str) -> None:
    op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
    op.execute(
        f"CREATE POLICY own_organization ON {table} TO quorate_api USING (organization_id = current_organization_id())"
    )
    op.execute(f"CREATE POLICY every_organization ON {table} TO quorate_worker USING (true)")
    op.execute(f"GRANT SELECT ON {table} TO quorate_api")


def _settle_history() -> None:
    """Totals at the end of each month that is final, and until the last day that is."""
    op.execute(
        "INSERT INTO settled_times"
        " SELECT least(extract(epoch FROM month + interval '1 month')::bigint, settled_s)"
        f" FROM (SELECT {SETTLED_S} AS settled_s) AS settled, LATERAL generate_series("
        "   (SELECT date_trunc('month', to_timestamp(min(day_s)) AT TIME ZONE 'UTC') FROM usage_log_days),"
        "   to_timestamp(settled_s - 1) AT TIME ZONE 'UTC', interval '1 month') AS month"
    )
    op.execute(
        "INSERT INTO settled_totals"
        " SELECT organization_id, group_id, until_s, sum(read_entries), sum(stored_byte_minutes)"
        " FROM settled_times JOIN usage_days ON day_s < until_s GROUP BY 1, 2, 3"
    )
    op.execute(
        "INSERT INTO settled_logs SELECT organization_id, group_id, log_epoch, until_s,"
        " max(committed_entries), max(committed_bytes)"
        " FROM settled_times JOIN usage_log_days ON day_s < until_s GROUP BY 1, 2, 3, 4"
    )


def downgrade() -> None:
    op.execute("DROP TRIGGER counted ON invoice_lines")
    op.execute("DROP FUNCTION add_billed_quantities()")
    op.execute("DROP TABLE billed_quantities")
    for table in ("usage_days", "usage_log_days"):
        op.execute(f"DROP INDEX {table}_time")
        op.execute(f"DROP INDEX {table}_organization")
        op.execute(f"CREATE INDEX {table}_organization ON {table} (organization_id)")
    for table in (*OWNED, "settled_times"):
        op.execute(f"DROP TABLE {table}")
