"""Budgets of organizations and projects, and the alerts that they gave."""

from alembic import op

revision = "2026_11_25_budgets"
down_revision = "2026_11_25_documents"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # A project's budget, or without a project the organization's. `action` is a text, because later ones come to it.
    op.execute(
        "CREATE TABLE budgets ("
        "  id uuid PRIMARY KEY,"
        "  organization_id uuid NOT NULL REFERENCES organizations,"
        "  project_id uuid,"
        "  monthly_micros bigint NOT NULL CHECK (monthly_micros > 0),"
        "  thresholds_percent bigint[] NOT NULL,"
        "  forecast_thresholds_percent bigint[] NOT NULL,"
        "  action text NOT NULL CONSTRAINT budgets_action_check CHECK (action = 'alert'),"
        "  row_version bigint NOT NULL DEFAULT 1 CHECK (row_version >= 1),"
        "  created_at timestamp with time zone NOT NULL,"
        "  updated_at timestamp with time zone NOT NULL,"
        "  deleted_at timestamp with time zone,"
        "  UNIQUE (organization_id, id),"
        "  FOREIGN KEY (organization_id, project_id) REFERENCES projects (organization_id, id)"
        ")"
    )
    op.execute(
        "CREATE UNIQUE INDEX budgets_one_each ON budgets (organization_id, project_id)"
        " NULLS NOT DISTINCT WHERE deleted_at IS NULL"
    )
    # The key lets each threshold of a budget fire once a month, whoever evaluates it and how often.
    op.execute(
        "CREATE TABLE budget_alerts ("
        "  id uuid NOT NULL UNIQUE,"
        "  organization_id uuid NOT NULL,"
        "  budget_id uuid NOT NULL,"
        "  month text NOT NULL CHECK (month ~ '^20[0-9]{2}-(0[1-9]|1[0-2])$'),"
        "  kind text NOT NULL CHECK (kind IN ('actual', 'forecast')),"
        "  threshold_percent bigint NOT NULL CHECK (threshold_percent > 0),"
        "  amount_micros bigint NOT NULL CHECK (amount_micros >= 0),"
        "  monthly_micros bigint NOT NULL CHECK (monthly_micros > 0),"
        "  at timestamp with time zone NOT NULL,"
        "  PRIMARY KEY (budget_id, month, kind, threshold_percent),"
        "  FOREIGN KEY (organization_id, budget_id) REFERENCES budgets (organization_id, id)"
        ")"
    )
    op.execute("CREATE INDEX budget_alerts_organization ON budget_alerts (organization_id, month)")
    op.execute(
        "CREATE FUNCTION refuse_rewriting() RETURNS trigger LANGUAGE plpgsql AS $$"
        " BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END $$"
    )
    op.execute(
        "CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON budget_alerts"
        " FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewriting()"
    )
    for table in ("budgets", "budget_alerts"):
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(
            f"CREATE POLICY own_organization ON {table} TO quorate_api"
            " USING (organization_id = current_organization_id())"
        )
        op.execute(f"CREATE POLICY every_organization ON {table} TO quorate_worker USING (true)")
    op.execute("GRANT SELECT, INSERT, UPDATE ON budgets TO quorate_api")
    op.execute("GRANT SELECT ON budgets TO quorate_worker")
    op.execute("GRANT SELECT ON budget_alerts TO quorate_api")
    op.execute("GRANT SELECT, INSERT ON budget_alerts TO quorate_worker")


def downgrade() -> None:
    op.execute("DROP TABLE budget_alerts")
    op.execute("DROP FUNCTION refuse_rewriting")
    op.execute("DROP TABLE budgets")
