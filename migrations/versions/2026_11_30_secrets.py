"""Which secret of the API a key's HMAC is under, so that one that is used under a former secret moves to the present."""

from alembic import op

revision = "2026_11_30_secrets"
down_revision = "2026_11_30_console"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Unknown for keys from before.
    op.execute("ALTER TABLE api_key_secrets ADD COLUMN under text")
    op.execute("GRANT UPDATE (secret_hmac, under) ON api_key_secrets TO quorate_api")
    op.execute("GRANT UPDATE (token_hmac) ON sessions TO quorate_api")


def downgrade() -> None:
    op.execute("REVOKE UPDATE (token_hmac) ON sessions FROM quorate_api")
    op.execute("REVOKE UPDATE (secret_hmac) ON api_key_secrets FROM quorate_api")
    op.execute("ALTER TABLE api_key_secrets DROP COLUMN under")
