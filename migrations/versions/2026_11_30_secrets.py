"""The secret of the API under which a key's HMAC is: a key that is used under a former one moves to the present one."""

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
