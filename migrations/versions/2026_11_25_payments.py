"""Payment of invoices: due dates, entries, checkouts, a provider's events and reminders."""

from alembic import op

revision = "2026_11_25_payments"
down_revision = "2026_11_25_corrections"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Invoices issued so far have no due date, and nobody is reminded of them.
    op.execute(
        "ALTER TABLE invoices ADD COLUMN due_at timestamptz,"
        " ADD CONSTRAINT invoices_due_after_issue CHECK (due_at IS NULL OR due_at >= issued_at AND kind = 'invoice')"
    )
    op.execute("CREATE INDEX invoices_due ON invoices (due_at, id) WHERE due_at IS NOT NULL")
    op.execute("CREATE INDEX invoices_corrects ON invoices (corrects_invoice_id) WHERE corrects_invoice_id IS NOT NULL")
    op.execute("CREATE INDEX invoices_number ON invoices (number)")
    _entries()
    _events_and_checkouts()
    _reminders()
    for table in ("payment_entries", "payment_events", "payment_checkouts", "payment_reminders"):
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(
            f"CREATE POLICY own_organization ON {table} TO quorate_api"
            " USING (organization_id = current_organization_id())"
        )
        op.execute(f"CREATE POLICY every_organization ON {table} TO quorate_worker USING (true)")
    op.execute("GRANT SELECT, INSERT ON payment_entries, payment_events, payment_checkouts TO quorate_api")
    op.execute("GRANT UPDATE (session_id, url, ended) ON payment_checkouts TO quorate_api")
    op.execute("GRANT SELECT ON payment_reminders TO quorate_api")
    op.execute("GRANT SELECT ON payment_entries TO quorate_worker")
    op.execute("GRANT SELECT, INSERT ON payment_reminders TO quorate_worker")
    _finders()


def _entries() -> None:
    # An entry moves one amount between two accounts, so it adds up by its shape.
    op.execute(
        "CREATE TABLE payment_entries ("
        "  id uuid PRIMARY KEY,"
        "  organization_id uuid NOT NULL,"
        "  invoice_id uuid NOT NULL,"
        "  kind text NOT NULL CHECK (kind IN ('payment', 'write_off', 'reversal')),"
        "  provider text NOT NULL CHECK (provider IN ('manual', 'stripe')),"
        "  reference text NOT NULL CHECK (length(reference) BETWEEN 1 AND 200),"
        "  amount_micros bigint NOT NULL CHECK (amount_micros > 0 AND amount_micros % 10000 = 0),"
        "  debit_account text NOT NULL,"
        "  credit_account text NOT NULL CHECK (credit_account <> debit_account),"
        "  reverses_id uuid UNIQUE,"
        "  recorded_by text NOT NULL,"
        "  at timestamptz NOT NULL,"
        "  UNIQUE (organization_id, invoice_id, id),"
        "  CHECK ((kind = 'reversal') = (reverses_id IS NOT NULL)),"
        "  FOREIGN KEY (organization_id, invoice_id) REFERENCES invoices (organization_id, id),"
        "  FOREIGN KEY (organization_id, invoice_id, reverses_id)"
        "    REFERENCES payment_entries (organization_id, invoice_id, id)"
        ")"
    )
    op.execute("CREATE INDEX payment_entries_invoice ON payment_entries (invoice_id, id)")
    # Money that a provider tells of is recorded once, by however many of its events.
    op.execute(
        "CREATE UNIQUE INDEX payment_entries_told_once ON payment_entries (invoice_id, provider, reference)"
        " WHERE kind = 'payment' AND provider <> 'manual'"
    )
    op.execute(
        "CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON payment_entries"
        " FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewriting()"
    )


def _events_and_checkouts() -> None:
    op.execute(
        "CREATE TABLE payment_events ("
        "  provider text NOT NULL,"
        "  event_id text NOT NULL,"
        "  organization_id uuid NOT NULL,"
        "  invoice_id uuid NOT NULL,"
        "  type text NOT NULL,"
        "  at timestamptz NOT NULL,"
        "  PRIMARY KEY (provider, event_id),"
        "  FOREIGN KEY (organization_id, invoice_id) REFERENCES invoices (organization_id, id)"
        ")"
    )
    op.execute("CREATE INDEX payment_events_organization ON payment_events (organization_id)")
    op.execute(
        "CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON payment_events"
        " FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewriting()"
    )
    # Stored before the provider is asked: everything that is sent to it. Its page is stored with its answer.
    op.execute(
        "CREATE TABLE payment_checkouts ("
        "  organization_id uuid NOT NULL,"
        "  invoice_id uuid NOT NULL,"
        "  attempt bigint NOT NULL CHECK (attempt > 0),"
        "  amount_micros bigint NOT NULL CHECK (amount_micros > 0 AND amount_micros % 10000 = 0),"
        "  session_id text,"
        "  url text,"
        "  created_at timestamptz NOT NULL,"
        "  expires_at timestamptz NOT NULL CHECK (expires_at > created_at),"
        "  ended boolean NOT NULL,"
        "  PRIMARY KEY (invoice_id, attempt),"
        "  CHECK ((session_id IS NULL) = (url IS NULL)),"
        "  FOREIGN KEY (organization_id, invoice_id) REFERENCES invoices (organization_id, id)"
        ")"
    )
    op.execute("CREATE INDEX payment_checkouts_organization ON payment_checkouts (organization_id)")


def _reminders() -> None:
    # The key lets each stage of an invoice be told once, whoever evaluates it and how often.
    op.execute(
        "CREATE TABLE payment_reminders ("
        "  id uuid NOT NULL UNIQUE,"
        "  organization_id uuid NOT NULL,"
        "  invoice_id uuid NOT NULL,"
        "  stage text NOT NULL CHECK (stage IN ('reminder', 'second_reminder', 'final_notice')),"
        "  due_micros bigint NOT NULL CHECK (due_micros > 0),"
        "  due_at timestamptz NOT NULL,"
        "  at timestamptz NOT NULL CHECK (at >= due_at),"
        "  PRIMARY KEY (invoice_id, stage),"
        "  FOREIGN KEY (organization_id, invoice_id) REFERENCES invoices (organization_id, id)"
        ")"
    )
    op.execute("CREATE INDEX payment_reminders_organization ON payment_reminders (organization_id)")
    op.execute(
        "CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON payment_reminders"
        " FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewriting()"
    )


def _finders() -> None:
    """Operators and a provider's events name an invoice, and know no organization."""
    op.execute(
        "CREATE FUNCTION find_invoice_owner(wanted uuid) RETURNS uuid LANGUAGE sql STABLE"
        " SECURITY DEFINER SET search_path = public, pg_temp AS $$"
        " SELECT organization_id FROM invoices WHERE id = wanted $$"
    )
    op.execute(
        "CREATE FUNCTION find_invoices(wanted text)"
        " RETURNS TABLE (id uuid, organization_id uuid, number text, total_micros bigint, currency text,"
        " issued_at timestamptz, due_at timestamptz) LANGUAGE sql STABLE"
        " SECURITY DEFINER SET search_path = public, pg_temp AS $$"
        " SELECT i.id, i.organization_id, i.number, i.total_micros, i.currency, i.issued_at, i.due_at"
        " FROM invoices i WHERE i.number = wanted AND i.kind = 'invoice' ORDER BY i.id LIMIT 100 $$"
    )
    op.execute("REVOKE EXECUTE ON FUNCTION find_invoice_owner, find_invoices FROM PUBLIC")
    op.execute("GRANT EXECUTE ON FUNCTION find_invoice_owner, find_invoices TO quorate_api")


def downgrade() -> None:
    raise RuntimeError("Recorded payments would be lost; restore a backup instead.")
