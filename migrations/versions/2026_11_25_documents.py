"""Tax of invoices and credit notes, and the parties as they were when a document was issued."""

from alembic import op

revision = "2026_11_25_documents"
down_revision = "2026_11_25_closed_until"
branch_labels = None
depends_on = None

_ADDS_UP = """
CREATE OR REPLACE FUNCTION check_invoice_adds_up() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    checked uuid;
    head record;
BEGIN
    IF TG_TABLE_NAME = 'invoices' THEN checked := NEW.id; ELSE checked := NEW.invoice_id; END IF;
    IF (SELECT COALESCE(sum(amount_micros), 0) FROM ledger_entries WHERE invoice_id = checked) <> 0 THEN
        RAISE EXCEPTION 'the ledger entries of invoice % do not add up to zero', checked;
    END IF;
    SELECT total_micros, tax_micros INTO head FROM invoices WHERE id = checked;
    IF (SELECT COALESCE(sum(amount_micros), 0) FROM invoice_taxes WHERE invoice_id = checked) <> head.tax_micros THEN
        RAISE EXCEPTION 'the tax lines of invoice % do not add up to its tax', checked;
    END IF;
    IF (SELECT COALESCE(sum(amount_micros), 0) FROM invoice_lines WHERE invoice_id = checked) + head.tax_micros
        <> head.total_micros THEN
        RAISE EXCEPTION 'the lines and the tax of invoice % do not add up to its total', checked;
    END IF;
    RETURN NULL;
END $$
"""


def upgrade() -> None:
    # Documents issued so far have no tax, and are shown with the parties' present names.
    op.execute("ALTER TABLE invoices ADD COLUMN tax_micros bigint DEFAULT 0 NOT NULL")
    op.execute("ALTER TABLE invoices ADD COLUMN seller jsonb, ADD COLUMN customer jsonb")
    op.execute(
        "ALTER TABLE invoices ADD CONSTRAINT invoices_tax_is_a_part CHECK (CASE kind"
        " WHEN 'invoice' THEN tax_micros BETWEEN 0 AND total_micros"
        " ELSE tax_micros BETWEEN total_micros AND 0 END)"
    )
    op.execute(
        "CREATE TABLE invoice_taxes ("
        "  organization_id uuid NOT NULL,"
        "  invoice_id uuid NOT NULL,"
        "  position integer NOT NULL,"
        "  label text NOT NULL CHECK (label <> ''),"
        "  rate_ppm bigint NOT NULL CHECK (rate_ppm BETWEEN 0 AND 1000000),"
        "  base_micros bigint NOT NULL,"
        "  amount_micros bigint NOT NULL,"
        "  PRIMARY KEY (invoice_id, position),"
        "  FOREIGN KEY (organization_id, invoice_id) REFERENCES invoices (organization_id, id)"
        ")"
    )
    op.execute(
        "CREATE TRIGGER immutable BEFORE UPDATE OR DELETE OR TRUNCATE ON invoice_taxes"
        " FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()"
    )
    op.execute(_ADDS_UP)
    op.execute(
        "CREATE CONSTRAINT TRIGGER adds_up AFTER INSERT ON invoice_taxes"
        " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION check_invoice_adds_up()"
    )
    op.execute("ALTER TABLE invoice_taxes ENABLE ROW LEVEL SECURITY")
    op.execute(
        "CREATE POLICY own_organization ON invoice_taxes TO quorate_api"
        " USING (organization_id = current_organization_id())"
    )
    op.execute("CREATE POLICY every_organization ON invoice_taxes TO quorate_worker USING (true)")
    op.execute("GRANT SELECT ON invoice_taxes TO quorate_api")
    op.execute("GRANT SELECT, INSERT ON invoice_taxes TO quorate_worker")


def downgrade() -> None:
    raise RuntimeError("Documents with tax would not add up any more; restore a backup instead.")
