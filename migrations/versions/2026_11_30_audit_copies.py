"""Events of audit logs that are not yet copied into the service's own group. A trigger notes each."""

from alembic import op

revision = "2026_11_30_audit_copies"
down_revision = "2026_11_30_identities"
branch_labels = None
depends_on = None

TABLES = {"audit_events": "NEW.organization_id::text", "operator_events": "'operators'"}


def upgrade() -> None:
    # `log`: an organization's id, or `operators`.
    op.execute("CREATE TABLE uncopied_events (log text NOT NULL, seq bigint NOT NULL, PRIMARY KEY (log, seq))")
    op.execute("GRANT SELECT, DELETE ON uncopied_events TO quorate_worker")
    for table, name in TABLES.items():
        op.execute(
            f"CREATE FUNCTION note_{table}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER"
            " SET search_path = public, pg_temp AS $$ BEGIN"
            f" INSERT INTO uncopied_events VALUES ({name}, NEW.seq); RETURN NULL; END $$"
        )
        op.execute(f"REVOKE EXECUTE ON FUNCTION note_{table} FROM PUBLIC")
        op.execute(f"CREATE TRIGGER to_copy AFTER INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION note_{table}()")
    op.execute("INSERT INTO uncopied_events SELECT organization_id::text, seq FROM audit_events")
    op.execute("INSERT INTO uncopied_events SELECT 'operators', seq FROM operator_events")


def downgrade() -> None:
    for table in TABLES:
        op.execute(f"DROP TRIGGER to_copy ON {table}")
        op.execute(f"DROP FUNCTION note_{table}")
    op.execute("DROP TABLE uncopied_events")
