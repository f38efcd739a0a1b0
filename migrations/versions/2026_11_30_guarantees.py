"""Guarantees of projects, and lines of invoices that are of a project."""

from alembic import op

revision = "2026_11_30_guarantees"
down_revision = "2026_11_29_reads"
branch_labels = None
depends_on = None

KINDS = ("reservation", "appends", "reads", "egress", "storage", "sla_credit", "commitment")
NOT_COUNTED = ("sla_credit", "commitment")


def upgrade() -> None:
    op.execute(
        "CREATE TABLE guarantees ("
        "  project_id uuid NOT NULL REFERENCES projects,"
        "  revision bigint NOT NULL CHECK (revision > 0),"
        "  organization_id uuid NOT NULL REFERENCES organizations,"
        "  terms jsonb,"
        "  hourly_micros bigint NOT NULL CHECK (hourly_micros >= 0),"
        "  requested_at timestamptz NOT NULL,"
        "  since timestamptz,"
        "  PRIMARY KEY (project_id, revision)"
        ")"
    )
    op.execute("CREATE INDEX guarantees_organization ON guarantees (organization_id)")
    op.execute("CREATE INDEX guarantees_unsettled ON guarantees (requested_at) WHERE since IS NULL")
    op.execute(
        "CREATE TRIGGER confirmed_stays BEFORE UPDATE OR DELETE ON guarantees"
        " FOR EACH ROW WHEN (OLD.since IS NOT NULL) EXECUTE FUNCTION refuse_rewriting()"
    )
    op.execute("ALTER TABLE guarantees ENABLE ROW LEVEL SECURITY")
    op.execute(
        "CREATE POLICY own_organization ON guarantees TO quorate_api"
        " USING (organization_id = current_organization_id())"
    )
    op.execute("CREATE POLICY every_organization ON guarantees TO quorate_worker USING (true)")
    op.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON guarantees TO quorate_api")
    op.execute("GRANT SELECT, UPDATE, DELETE ON guarantees TO quorate_worker")
    op.execute("ALTER TABLE invoice_lines ADD COLUMN project_id uuid")
    _allow((*KINDS, "guarantee"))
    _own("group_id IS NOT NULL OR kind = 'commitment' OR (kind = 'guarantee' AND project_id IS NOT NULL)")
    _count((*NOT_COUNTED, "guarantee"))


def downgrade() -> None:
    # Fails where a guarantee was billed: documents do not change.
    _count(NOT_COUNTED)
    _own("group_id IS NOT NULL OR kind = 'commitment'")
    _allow(KINDS)
    op.execute("ALTER TABLE invoice_lines DROP COLUMN project_id")
    op.execute("DROP TABLE guarantees")


def _allow(kinds: tuple[str, ...]) -> None:
    listed = ", ".join(f"'{kind}'" for kind in kinds)
    op.execute("ALTER TABLE invoice_lines DROP CONSTRAINT invoice_lines_kind_check")
    op.execute(f"ALTER TABLE invoice_lines ADD CONSTRAINT invoice_lines_kind_check CHECK (kind IN ({listed}))")


def _own(condition: str) -> None:
    op.execute("ALTER TABLE invoice_lines DROP CONSTRAINT invoice_lines_of_a_group")
    op.execute(f"ALTER TABLE invoice_lines ADD CONSTRAINT invoice_lines_of_a_group CHECK ({condition})")


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
