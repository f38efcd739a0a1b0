"""Spend caps: budgets that throttle or suspend, and the access to groups that they leave."""

from alembic import op

revision = "2026_11_27_caps"
down_revision = "2026_11_26_promises"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE budgets DROP CONSTRAINT budgets_action_check")
    op.execute(
        "ALTER TABLE budgets ADD CONSTRAINT budgets_action_check CHECK (action IN ('alert', 'throttle', 'suspend'))"
    )
    # The key lets a cap act once a month. Another amount or action is another cap.
    op.execute(
        "CREATE TABLE budget_actions ("
        "  id uuid NOT NULL UNIQUE,"
        "  organization_id uuid NOT NULL,"
        "  budget_id uuid NOT NULL,"
        "  month text NOT NULL CHECK (month ~ '^20[0-9]{2}-(0[1-9]|1[0-2])$'),"
        "  action text NOT NULL CHECK (action IN ('throttle', 'suspend')),"
        "  monthly_micros bigint NOT NULL CHECK (monthly_micros > 0),"
        "  amount_micros bigint NOT NULL CHECK (amount_micros >= monthly_micros),"
        "  at timestamp with time zone NOT NULL,"
        "  PRIMARY KEY (budget_id, month, action, monthly_micros),"
        "  FOREIGN KEY (organization_id, budget_id) REFERENCES budgets (organization_id, id)"
        ")"
    )
    op.execute("CREATE INDEX budget_actions_organization ON budget_actions (organization_id, month)")
    op.execute(
        "CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON budget_actions"
        " FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewriting()"
    )
    op.execute("ALTER TABLE budget_actions ENABLE ROW LEVEL SECURITY")
    op.execute(
        "CREATE POLICY own_organization ON budget_actions TO quorate_api"
        " USING (organization_id = current_organization_id())"
    )
    op.execute("CREATE POLICY every_organization ON budget_actions TO quorate_worker USING (true)")
    op.execute("GRANT SELECT ON budget_actions TO quorate_api")
    op.execute("GRANT SELECT, INSERT ON budget_actions TO quorate_worker")
    # `access`: as the coordinator last said. `access_wanted`: as the caps leave it.
    for column in ("access", "access_wanted"):
        op.execute(
            f"ALTER TABLE groups ADD COLUMN {column} text NOT NULL DEFAULT 'full'"
            f" CHECK ({column} IN ('full', 'reserved', 'suspended'))"
        )
    op.execute("CREATE INDEX groups_limited ON groups (organization_id) WHERE access_wanted <> 'full'")
    op.execute("CREATE INDEX groups_access_unsettled ON groups (id) WHERE access <> access_wanted")


def downgrade() -> None:
    op.execute("ALTER TABLE groups DROP COLUMN access_wanted, DROP COLUMN access")
    op.execute("DROP TABLE budget_actions")
    op.execute("ALTER TABLE budgets DROP CONSTRAINT budgets_action_check")
    op.execute("UPDATE budgets SET action = 'alert'")
    op.execute("ALTER TABLE budgets ADD CONSTRAINT budgets_action_check CHECK (action = 'alert')")
