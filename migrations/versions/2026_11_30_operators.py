"""The operators' audit log: each change that they make, in one chain of hashes."""

from alembic import op

revision = "2026_11_30_operators"
down_revision = "2026_11_30_closures"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        "CREATE TABLE operator_events ("
        "  seq bigint PRIMARY KEY CHECK (seq >= 1),"
        "  at timestamptz NOT NULL,"
        "  event text NOT NULL,"
        "  hash bytea NOT NULL CHECK (length(hash) = 32)"
        ")"
    )
    op.execute("GRANT SELECT, INSERT ON operator_events TO quorate_api")
    op.execute("GRANT SELECT ON operator_events TO quorate_worker")
    op.execute(
        "CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON operator_events"
        " FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewriting()"
    )


def downgrade() -> None:
    op.execute("DROP TABLE operator_events")
