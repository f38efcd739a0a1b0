"""Commitments of organizations, and lines of invoices that are of no group."""

from alembic import op

revision = "2026_11_28_commitments"
down_revision = "2026_11_28_egress"
branch_labels = None
depends_on = None

KINDS = ("reservation", "appends", "reads", "egress", "storage", "sla_credit")
NOT_COUNTED = ("sla_credit", "commitment")


def upgrade() -> None:
    op.execute(
        "CREATE TABLE commitments ("
        "  id uuid PRIMARY KEY,"
        "  organization_id uuid NOT NULL REFERENCES organizations,"
        "  monthly_micros bigint NOT NULL CHECK (monthly_micros > 0),"
        "  months bigint NOT NULL CHECK (months > 0),"
        "  discount_percent bigint NOT NULL CHECK (discount_percent BETWEEN 0 AND 100),"
        "  starts_at timestamptz NOT NULL CHECK (starts_at > created_at),"
        "  ends_at timestamptz NOT NULL CHECK (ends_at > starts_at),"
        "  created_at timestamptz NOT NULL,"
        "  created_by uuid NOT NULL REFERENCES users"
        ")"
    )
    op.execute("CREATE INDEX commitments_organization ON commitments (organization_id)")
    op.execute(
        "CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON commitments"
        " FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewriting()"
    )
    op.execute("ALTER TABLE commitments ENABLE ROW LEVEL SECURITY")
    op.execute(
        "CREATE POLICY own_organization ON commitments TO quorate_api"
        " USING (organization_id = current_organization_id())"
    )
    op.execute("CREATE POLICY every_organization ON commitments TO quorate_worker USING (true)")
    op.execute("GRANT SELECT, INSERT ON commitments TO quorate_api")
    op.execute("GRANT SELECT ON commitments TO quorate_worker")
    op.execute("ALTER TABLE invoice_lines ALTER COLUMN group_id DROP NOT NULL")
    _allow((*KINDS, "commitment"))
    op.execute(
        "ALTER TABLE invoice_lines ADD CONSTRAINT invoice_lines_of_a_group"
        " CHECK (group_id IS NOT NULL OR kind = 'commitment')"
    )
    _count(NOT_COUNTED)


def downgrade() -> None:
    # Fails where a commitment was billed: documents do not change.
    _count(("sla_credit",))
    op.execute("ALTER TABLE invoice_lines DROP CONSTRAINT invoice_lines_of_a_group")
    _allow(KINDS)
    op.execute("ALTER TABLE invoice_lines ALTER COLUMN group_id SET NOT NULL")
    op.execute("DROP TABLE commitments")


def _allow(kinds: tuple[str, ...]) -> None:
    listed = ", ".join(f"'{kind}'" for kind in kinds)
    op.execute("ALTER TABLE invoice_lines DROP CONSTRAINT invoice_lines_kind_check")
    op.execute(f"ALTER TABLE invoice_lines ADD CONSTRAINT invoice_lines_kind_check CHECK (kind IN ({listed}))")


def _count(without: tuple[str, ...]) -> None:
    """Quantities of other kinds are added up as they are billed."""
    listed = ", ".join(f"'{kind}'" for kind in without)
    op.execute(
        "CREATE OR REPLACE FUNCTION add_billed_quantities() RETURNS trigger LANGUAGE plpgsql"
        " SECURITY DEFINER SET search_path = public, pg_temp AS $$\n"
        "BEGIN\n"
        "  INSERT INTO billed_quantities AS b\n"
        "    SELECT organization_id, group_id, kind, sum(quantity) FROM added\n"
        f"    WHERE kind NOT IN ({listed}) AND correction_id IS NULL GROUP BY 1, 2, 3 ORDER BY 2, 3\n"
        "    ON CONFLICT (group_id, kind) DO UPDATE SET quantity = b.quantity + excluded.quantity;\n"
        "  RETURN NULL;\n"
        "END $$"
    )
