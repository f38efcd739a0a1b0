"""The audit log: each change by whom and from where, in one chain of hashes for each organization."""

from alembic import op

revision = "2026_11_30_audit"
down_revision = "2026_11_30_people"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        "CREATE TABLE audit_events ("
        "  organization_id uuid NOT NULL REFERENCES organizations,"
        "  seq bigint NOT NULL CHECK (seq >= 1),"
        "  at timestamptz NOT NULL,"
        "  event text NOT NULL,"
        "  hash bytea NOT NULL CHECK (length(hash) = 32),"
        "  PRIMARY KEY (organization_id, seq)"
        ")"
    )
    op.execute("ALTER TABLE audit_events ENABLE ROW LEVEL SECURITY")
    op.execute(
        "CREATE POLICY own_organization ON audit_events TO quorate_api"
        " USING (organization_id = current_organization_id())"
    )
    op.execute("CREATE POLICY every_organization ON audit_events TO quorate_worker USING (true)")
    op.execute("GRANT SELECT, INSERT ON audit_events TO quorate_api")
    op.execute("GRANT SELECT ON audit_events TO quorate_worker")
    op.execute(
        "CREATE TRIGGER audit_events_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_events"
        " FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewriting()"
    )


def downgrade() -> None:
    op.execute("DROP TABLE audit_events")
