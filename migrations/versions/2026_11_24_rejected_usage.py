"""Usage records that cannot be counted are kept for people, each with its reason."""

from alembic import op

revision = "2026_11_24_rejected_usage"
down_revision = "2026_11_22_resize"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # `position` is that of the record in the entry, -1 for an entry as a whole. It makes a repeated read harmless.
    op.execute(
        "CREATE TABLE rejected_usage ("
        "  entry_id text NOT NULL,"
        "  position integer NOT NULL CHECK (position >= -1),"
        "  rejected_at timestamp with time zone NOT NULL,"
        "  reason text NOT NULL,"
        "  data text NOT NULL,"
        "  PRIMARY KEY (entry_id, position)"
        ")"
    )
    op.execute("CREATE INDEX rejected_usage_recent ON rejected_usage (rejected_at DESC)")
    op.execute("GRANT SELECT, INSERT, DELETE ON rejected_usage TO quorate_worker")


def downgrade() -> None:
    op.execute("DROP TABLE rejected_usage")
