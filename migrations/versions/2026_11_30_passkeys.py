"""Passkeys of people, and the challenges that were answered, so that none is answered twice."""

from alembic import op

revision = "2026_11_30_passkeys"
down_revision = "2026_11_30_audit"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        "CREATE TABLE passkeys ("
        "  id uuid PRIMARY KEY,"
        "  user_id uuid NOT NULL REFERENCES users,"
        "  name text NOT NULL,"
        "  credential_id bytea NOT NULL UNIQUE CHECK (length(credential_id) BETWEEN 1 AND 1023),"
        "  public_key bytea NOT NULL,"
        "  sign_count bigint NOT NULL CHECK (sign_count >= 0),"
        "  created_at timestamptz NOT NULL,"
        "  last_used_at timestamptz"
        ")"
    )
    op.execute("CREATE INDEX passkeys_user ON passkeys (user_id)")
    op.execute("CREATE TABLE answered_challenges (challenge bytea PRIMARY KEY, expires_at timestamptz NOT NULL)")
    op.execute("CREATE INDEX answered_challenges_end ON answered_challenges (expires_at)")
    op.execute("GRANT SELECT, INSERT, DELETE ON passkeys, answered_challenges TO quorate_api")
    op.execute("GRANT UPDATE (sign_count, last_used_at) ON passkeys TO quorate_api")


def downgrade() -> None:
    op.execute("DROP TABLE answered_challenges")
    op.execute("DROP TABLE passkeys")
