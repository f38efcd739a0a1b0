"""Corrections by operators, and closed months that have changed since, for which further credit notes are issued."""

from alembic import op

revision = "2026_11_25_corrections"
down_revision = "2026_11_25_budgets"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Either a quantity of a kind of use, or minutes of the SLA that are bad.
    op.execute(
        "CREATE TABLE corrections ("
        "  id uuid PRIMARY KEY,"
        "  organization_id uuid NOT NULL,"
        "  group_id uuid NOT NULL,"
        "  kind text NOT NULL CHECK (kind IN ('appends', 'reads', 'storage', 'sla_minutes')),"
        "  quantity bigint CHECK (quantity <> 0),"
        "  day date,"
        "  start_s bigint CHECK (start_s % 60 = 0),"
        "  end_s bigint CHECK (end_s % 60 = 0),"
        "  reason text NOT NULL CHECK (reason <> ''),"
        "  author text NOT NULL CHECK (author <> ''),"
        "  created_at timestamp with time zone NOT NULL,"
        "  UNIQUE (organization_id, id),"
        "  FOREIGN KEY (organization_id, group_id) REFERENCES groups (organization_id, id),"
        "  CONSTRAINT corrections_say_what CHECK (CASE kind WHEN 'sla_minutes'"
        "    THEN num_nonnulls(start_s, end_s) = 2 AND start_s < end_s AND num_nonnulls(quantity, day) = 0"
        "    ELSE num_nonnulls(quantity, day) = 2 AND num_nonnulls(start_s, end_s) = 0 END)"
        ")"
    )
    op.execute("CREATE INDEX corrections_group ON corrections (organization_id, group_id)")
    op.execute(
        "CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON corrections"
        " FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewriting()"
    )
    # Closed months of groups that are to be judged again.
    op.execute(
        "CREATE TABLE changed_months ("
        "  organization_id uuid NOT NULL,"
        "  group_id uuid NOT NULL,"
        "  month_start timestamp with time zone NOT NULL,"
        "  PRIMARY KEY (group_id, month_start),"
        "  FOREIGN KEY (organization_id, group_id) REFERENCES groups (organization_id, id)"
        ")"
    )
    op.execute("CREATE INDEX changed_months_organization ON changed_months (organization_id)")
    for table in ("corrections", "changed_months"):
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(
            f"CREATE POLICY own_organization ON {table} TO quorate_api"
            " USING (organization_id = current_organization_id())"
        )
        op.execute(f"CREATE POLICY every_organization ON {table} TO quorate_worker USING (true)")
    op.execute("GRANT SELECT, INSERT ON corrections TO quorate_api")
    op.execute("GRANT SELECT ON corrections TO quorate_worker")
    op.execute("GRANT SELECT, INSERT ON changed_months TO quorate_api")
    op.execute("GRANT SELECT, INSERT, DELETE ON changed_months TO quorate_worker")
    # An operator names a group. Its organization is not known before that.
    op.execute(
        "CREATE FUNCTION find_group(wanted uuid) RETURNS TABLE (organization_id uuid)"
        " LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS"
        " $$ SELECT g.organization_id FROM groups g WHERE g.id = wanted $$"
    )
    op.execute("REVOKE EXECUTE ON FUNCTION find_group FROM PUBLIC")
    op.execute("GRANT EXECUTE ON FUNCTION find_group TO quorate_api")
    _documents()


def _documents() -> None:
    # A correction stands on one document, as one line.
    op.execute(
        "ALTER TABLE invoice_lines ADD COLUMN correction_id uuid,"
        " ADD FOREIGN KEY (organization_id, correction_id) REFERENCES corrections (organization_id, id),"
        " DROP CONSTRAINT invoice_lines_quantity_check,"
        " ADD CONSTRAINT invoice_lines_quantity_check CHECK (quantity >= 0 OR correction_id IS NOT NULL)"
    )
    op.execute(
        "CREATE UNIQUE INDEX invoice_lines_correction ON invoice_lines (correction_id) WHERE correction_id IS NOT NULL"
    )
    # A month has one invoice, and as many credit notes as it takes. The notes of an invoice are looked up by it.
    op.execute("ALTER TABLE invoices DROP CONSTRAINT invoices_organization_id_kind_period_start_key")
    op.execute(
        "CREATE UNIQUE INDEX invoices_one_a_month ON invoices (organization_id, period_start) WHERE kind = 'invoice'"
    )
    op.execute(
        "CREATE INDEX invoices_corrected ON invoices (corrects_invoice_id) WHERE corrects_invoice_id IS NOT NULL"
    )
    # A note with a correction that is worth nothing, since all was credited before, has a sum of 0.
    op.execute("ALTER TABLE invoices DROP CONSTRAINT invoices_check1")
    op.execute(
        "ALTER TABLE invoices ADD CONSTRAINT invoices_sign"
        " CHECK (CASE kind WHEN 'invoice' THEN total_micros >= 0 ELSE total_micros <= 0 END)"
    )


def downgrade() -> None:
    raise RuntimeError("Months may have several credit notes, and lines of corrections; restore a backup instead.")
