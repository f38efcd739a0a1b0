"""Secrets of API keys, several of a key while it is rotated; expiry of keys; credentials whose tokens are revoked."""

from alembic import op

revision = "2026_11_30_credentials"
down_revision = "2026_11_30_partitions"
branch_labels = None
depends_on = None

_COLUMNS = (
    "id uuid, organization_id uuid, project_id uuid, scopes text[], revoked_at timestamptz, last_used_at timestamptz"
)


def upgrade() -> None:
    op.execute(
        "CREATE TABLE api_key_secrets ("
        "  id uuid PRIMARY KEY,"
        "  organization_id uuid NOT NULL REFERENCES organizations,"
        "  key_id uuid NOT NULL REFERENCES api_keys ON DELETE CASCADE,"
        "  secret_hmac bytea NOT NULL UNIQUE,"
        "  prefix text NOT NULL,"
        "  created_at timestamptz NOT NULL,"
        "  ends_at timestamptz,"
        "  tokens_until timestamptz"
        ")"
    )
    op.execute("CREATE INDEX api_key_secrets_key ON api_key_secrets (key_id, created_at)")
    op.execute(
        "INSERT INTO api_key_secrets (id, organization_id, key_id, secret_hmac, prefix, created_at)"
        " SELECT gen_random_uuid(), organization_id, id, secret_hmac, prefix, created_at FROM api_keys"
    )
    op.execute("ALTER TABLE sessions ADD COLUMN tokens_until timestamptz")
    op.execute(
        "CREATE TABLE revocations ("
        "  credential_id uuid PRIMARY KEY,"
        "  organization_id uuid NOT NULL REFERENCES organizations,"
        "  revoked_at timestamptz NOT NULL,"
        "  until timestamptz NOT NULL,"
        "  told_at timestamptz"
        ")"
    )
    op.execute("CREATE INDEX revocations_untold ON revocations (revoked_at) WHERE told_at IS NULL")
    op.execute("CREATE INDEX revocations_organization ON revocations (organization_id)")
    for table in ("api_key_secrets", "revocations"):
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(
            f"CREATE POLICY own_organization ON {table} TO quorate_api"
            " USING (organization_id = current_organization_id())"
        )
        op.execute(f"CREATE POLICY every_organization ON {table} TO quorate_worker USING (true)")
    op.execute("GRANT SELECT, INSERT, UPDATE ON api_key_secrets TO quorate_api")
    op.execute("GRANT SELECT, INSERT, UPDATE ON revocations TO quorate_api")
    op.execute("GRANT UPDATE (tokens_until) ON sessions TO quorate_api")
    op.execute("GRANT SELECT, UPDATE, DELETE ON revocations TO quorate_worker")
    op.execute("DROP FUNCTION find_api_key")
    op.execute("ALTER TABLE api_keys DROP COLUMN secret_hmac, DROP COLUMN prefix, ADD COLUMN expires_at timestamptz")
    # Organizations' keys made keys with any scope before: now they make none beyond their own.
    op.execute("UPDATE api_keys SET scopes = scopes || '{append,read}' WHERE project_id IS NULL")
    _find_api_key(
        f"{_COLUMNS}, credential_id uuid, ends_at timestamptz, tokens_until timestamptz",
        "k.id, k.organization_id, k.project_id, k.scopes, k.revoked_at, k.last_used_at, s.id,"
        " least(k.expires_at, s.ends_at), s.tokens_until"
        " FROM api_key_secrets s JOIN api_keys k ON k.id = s.key_id WHERE s.secret_hmac = wanted",
    )
    op.execute("DROP FUNCTION find_session")
    op.execute(
        "CREATE FUNCTION find_session(wanted bytea) RETURNS TABLE (id uuid, organization_id uuid, user_id uuid,"
        " expires_at timestamptz, role text, tokens_until timestamptz)"
        " LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$"
        " SELECT s.id, s.organization_id, s.user_id, s.expires_at, m.role, s.tokens_until"
        " FROM sessions s JOIN memberships m USING (organization_id, user_id) WHERE s.token_hmac = wanted $$"
    )
    _grant("find_session")


def downgrade() -> None:
    op.execute("DROP FUNCTION find_api_key")
    op.execute("ALTER TABLE api_keys ADD COLUMN secret_hmac bytea, ADD COLUMN prefix text")
    # The newest secret stays.
    op.execute(
        "UPDATE api_keys k SET secret_hmac = s.secret_hmac, prefix = s.prefix FROM"
        " (SELECT DISTINCT ON (key_id) * FROM api_key_secrets ORDER BY key_id, created_at DESC) s WHERE s.key_id = k.id"
    )
    op.execute(
        "ALTER TABLE api_keys ALTER COLUMN secret_hmac SET NOT NULL, ALTER COLUMN prefix SET NOT NULL,"
        " ADD CONSTRAINT api_keys_secret_hmac_key UNIQUE (secret_hmac), DROP COLUMN expires_at"
    )
    op.execute("UPDATE api_keys SET scopes = '{administer,manage}' WHERE project_id IS NULL")
    op.execute("DROP TABLE api_key_secrets")
    op.execute("DROP TABLE revocations")
    op.execute("DROP FUNCTION find_session")
    op.execute("ALTER TABLE sessions DROP COLUMN tokens_until")
    op.execute(
        "CREATE FUNCTION find_session(wanted bytea)"
        " RETURNS TABLE (id uuid, organization_id uuid, user_id uuid, expires_at timestamptz, role text)"
        " LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$"
        " SELECT s.id, s.organization_id, s.user_id, s.expires_at, m.role"
        " FROM sessions s JOIN memberships m USING (organization_id, user_id) WHERE s.token_hmac = wanted $$"
    )
    _grant("find_session")
    _find_api_key(
        _COLUMNS,
        "k.id, k.organization_id, k.project_id, k.scopes, k.revoked_at, k.last_used_at"
        " FROM api_keys k WHERE k.secret_hmac = wanted",
    )


def _find_api_key(columns: str, selected: str) -> None:
    op.execute(
        f"CREATE FUNCTION find_api_key(wanted bytea) RETURNS TABLE ({columns})"
        " LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$"
        f" SELECT {selected} $$"
    )
    _grant("find_api_key")


def _grant(function: str) -> None:
    op.execute(f"REVOKE EXECUTE ON FUNCTION {function} FROM PUBLIC")
    op.execute(f"GRANT EXECUTE ON FUNCTION {function} TO quorate_api")
