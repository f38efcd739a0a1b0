"""Invoices and credit notes are numbered without gaps by the seller: one series for each year and kind."""

from alembic import op

revision = "2026_11_24_document_numbers"
down_revision = "2026_11_24_rejected_usage"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Documents issued so far keep their numbers. They were unique within their organization alone.
    op.execute("ALTER TABLE invoices ADD COLUMN series text DEFAULT '' NOT NULL")
    op.execute("ALTER TABLE invoices ALTER COLUMN series DROP DEFAULT")
    op.execute("ALTER TABLE invoices DROP CONSTRAINT invoices_organization_id_sequence_key")
    op.execute("CREATE UNIQUE INDEX invoices_numbers ON invoices (series, kind, sequence) WHERE series <> ''")
    op.execute(
        "CREATE TABLE document_counters ("
        "  series text NOT NULL CHECK (series <> ''),"
        "  kind text NOT NULL,"
        "  last_sequence bigint NOT NULL CHECK (last_sequence > 0),"
        "  PRIMARY KEY (series, kind)"
        ")"
    )
    op.execute("GRANT SELECT, INSERT, UPDATE ON document_counters TO quorate_worker")
    op.execute("DROP TABLE invoice_counters")


def downgrade() -> None:
    raise RuntimeError("Two organizations' documents may have the same older number; restore a backup instead.")
