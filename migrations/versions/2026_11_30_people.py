"""People: verified e-mail addresses, mail, sessions that show where they are, second factors, invitations."""

from alembic import op

revision = "2026_11_30_people"
down_revision = "2026_11_30_credentials"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE users ADD COLUMN email_verified_at timestamptz")
    op.execute("UPDATE users SET email_verified_at = created_at")
    # An address that nobody has verified is nobody's yet.
    op.execute("ALTER TABLE users DROP CONSTRAINT users_email_key")
    op.execute("CREATE UNIQUE INDEX users_verified_email ON users (email) WHERE email_verified_at IS NOT NULL")
    op.execute("CREATE INDEX users_email ON users (email, created_at)")
    op.execute(
        "ALTER TABLE sessions"
        "  ADD COLUMN authenticated_at timestamptz,"
        "  ADD COLUMN last_seen_at timestamptz,"
        "  ADD COLUMN address text,"
        "  ADD COLUMN user_agent text"
    )
    op.execute("UPDATE sessions SET authenticated_at = created_at, last_seen_at = now(), address = '', user_agent = ''")
    op.execute(
        "ALTER TABLE sessions"
        "  ALTER COLUMN authenticated_at SET NOT NULL,"
        "  ALTER COLUMN last_seen_at SET NOT NULL,"
        "  ALTER COLUMN address SET NOT NULL,"
        "  ALTER COLUMN user_agent SET NOT NULL"
    )
    op.execute("GRANT UPDATE (authenticated_at, last_seen_at) ON sessions TO quorate_api")
    op.execute("CREATE INDEX sessions_user ON sessions (user_id)")
    op.execute("GRANT UPDATE, DELETE ON memberships TO quorate_api")
    _tables()
    _functions()


def _tables() -> None:
    op.execute(
        "CREATE TABLE mail_tokens ("
        "  token_hmac bytea PRIMARY KEY,"
        "  user_id uuid NOT NULL REFERENCES users,"
        "  purpose text NOT NULL CHECK (purpose IN ('verify_email', 'reset_password')),"
        "  created_at timestamptz NOT NULL,"
        "  expires_at timestamptz NOT NULL"
        ")"
    )
    op.execute("CREATE INDEX mail_tokens_user ON mail_tokens (user_id, purpose)")
    op.execute(
        "CREATE TABLE mails ("
        "  id uuid PRIMARY KEY,"
        "  sealed bytea NOT NULL,"
        "  created_at timestamptz NOT NULL,"
        "  attempts bigint NOT NULL CHECK (attempts >= 0),"
        "  next_at timestamptz NOT NULL"
        ")"
    )
    op.execute("CREATE INDEX mails_next ON mails (next_at)")
    op.execute(
        "CREATE TABLE totps ("
        "  user_id uuid PRIMARY KEY REFERENCES users,"
        "  sealed bytea NOT NULL,"
        "  created_at timestamptz NOT NULL,"
        "  confirmed_at timestamptz,"
        "  last_step bigint NOT NULL"
        ")"
    )
    op.execute(
        "CREATE TABLE recovery_codes ("
        "  user_id uuid NOT NULL REFERENCES users,"
        "  code_hmac bytea NOT NULL,"
        "  PRIMARY KEY (user_id, code_hmac)"
        ")"
    )
    op.execute(
        "CREATE TABLE invitations ("
        "  id uuid PRIMARY KEY,"
        "  organization_id uuid NOT NULL REFERENCES organizations,"
        "  email text NOT NULL CHECK (email = lower(email) AND length(email) <= 254),"
        "  role text NOT NULL CHECK (role IN ('owner', 'admin', 'developer', 'billing', 'viewer')),"
        "  token_hmac bytea NOT NULL UNIQUE,"
        "  invited_by uuid NOT NULL REFERENCES users,"
        "  created_at timestamptz NOT NULL,"
        "  expires_at timestamptz NOT NULL,"
        "  UNIQUE (organization_id, email)"
        ")"
    )
    op.execute("ALTER TABLE invitations ENABLE ROW LEVEL SECURITY")
    op.execute(
        "CREATE POLICY own_organization ON invitations TO quorate_api"
        " USING (organization_id = current_organization_id())"
    )
    op.execute("CREATE POLICY every_organization ON invitations TO quorate_worker USING (true)")
    op.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON invitations TO quorate_api")
    op.execute("GRANT SELECT, INSERT, DELETE ON mail_tokens, recovery_codes TO quorate_api")
    op.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON totps TO quorate_api")
    op.execute("GRANT INSERT ON mails TO quorate_api")
    op.execute("GRANT SELECT, UPDATE, DELETE ON mails TO quorate_worker")
    op.execute("GRANT SELECT, DELETE ON mail_tokens, invitations TO quorate_worker")


def _functions() -> None:
    """Functions for a person's sessions and memberships in all organizations."""
    op.execute("DROP FUNCTION find_session")
    _function(
        "find_session(wanted bytea)",
        "id uuid, organization_id uuid, user_id uuid, expires_at timestamptz, role text, tokens_until timestamptz,"
        " authenticated_at timestamptz, last_seen_at timestamptz",
        "SELECT s.id, s.organization_id, s.user_id, s.expires_at, m.role, s.tokens_until, s.authenticated_at,"
        " s.last_seen_at FROM sessions s JOIN memberships m USING (organization_id, user_id)"
        " WHERE s.token_hmac = wanted",
        "STABLE",
    )
    _function(
        "find_sessions_of(wanted uuid)",
        "id uuid, organization_id uuid, organization_name text, created_at timestamptz, last_seen_at timestamptz,"
        " expires_at timestamptz, address text, user_agent text",
        "SELECT s.id, s.organization_id, o.name, s.created_at, s.last_seen_at, s.expires_at, s.address, s.user_agent"
        " FROM sessions s JOIN organizations o USING (organization_id) WHERE s.user_id = wanted",
        "STABLE",
    )
    # A revocation lasts a minute longer than the note of the last token (docs/internals/api.md, "Revocation").
    _function(
        "end_sessions_of(wanted uuid, only_id uuid, kept_id uuid)",
        "id uuid",
        "WITH ended AS (DELETE FROM sessions s WHERE s.user_id = wanted AND (only_id IS NULL OR s.id = only_id)"
        " AND s.id IS DISTINCT FROM kept_id RETURNING s.id, s.organization_id, s.tokens_until),"
        " revoked AS (INSERT INTO revocations (credential_id, organization_id, revoked_at, until)"
        " SELECT e.id, e.organization_id, now(), e.tokens_until + interval '1 minute' FROM ended e"
        " WHERE e.tokens_until + interval '1 minute' > now() ON CONFLICT DO NOTHING)"
        " SELECT e.id FROM ended e",
        "VOLATILE",
    )
    _function(
        "find_invitation(wanted bytea)",
        "id uuid, organization_id uuid, organization_name text, email text, role text, expires_at timestamptz",
        "SELECT i.id, i.organization_id, o.name, i.email, i.role, i.expires_at"
        " FROM invitations i JOIN organizations o USING (organization_id) WHERE i.token_hmac = wanted",
        "STABLE",
    )
    _function(
        "unverified_rate_per_s()",
        "rate_per_s bigint",
        "SELECT coalesce(sum(g.rate_per_s), 0)::bigint FROM groups g WHERE g.deleted_at IS NULL"
        " AND NOT EXISTS (SELECT FROM memberships m JOIN users u ON u.id = m.user_id"
        " WHERE m.organization_id = g.organization_id AND m.role = 'owner' AND u.email_verified_at IS NOT NULL)",
        "STABLE",
    )
    op.execute("DROP FUNCTION find_memberships")
    _function(
        "find_memberships(wanted uuid)",
        "organization_id uuid, organization_name text, role text, created_at timestamptz",
        "SELECT m.organization_id, o.name, m.role, m.created_at"
        " FROM memberships m JOIN organizations o USING (organization_id) WHERE m.user_id = wanted",
        "STABLE",
    )


def _function(signature: str, columns: str, body: str, kind: str) -> None:
    op.execute(
        f"CREATE FUNCTION {signature} RETURNS TABLE ({columns})"
        f" LANGUAGE sql {kind} SECURITY DEFINER SET search_path = public, pg_temp AS $$ {body} $$"
    )
    name = signature.partition("(")[0]
    op.execute(f"REVOKE EXECUTE ON FUNCTION {name} FROM PUBLIC")
    op.execute(f"GRANT EXECUTE ON FUNCTION {name} TO quorate_api")


def downgrade() -> None:
    # Fails where an address has two accounts, of which one is verified at most.
    op.execute("DROP FUNCTION find_sessions_of")
    op.execute("DROP FUNCTION end_sessions_of")
    op.execute("DROP FUNCTION find_invitation")
    op.execute("DROP FUNCTION unverified_rate_per_s")
    op.execute("DROP FUNCTION find_session")
    _function(
        "find_session(wanted bytea)",
        "id uuid, organization_id uuid, user_id uuid, expires_at timestamptz, role text, tokens_until timestamptz",
        "SELECT s.id, s.organization_id, s.user_id, s.expires_at, m.role, s.tokens_until"
        " FROM sessions s JOIN memberships m USING (organization_id, user_id) WHERE s.token_hmac = wanted",
        "STABLE",
    )
    op.execute("DROP FUNCTION find_memberships")
    _function(
        "find_memberships(wanted uuid)",
        "organization_id uuid, role text, created_at timestamptz",
        "SELECT m.organization_id, m.role, m.created_at FROM memberships m WHERE m.user_id = wanted",
        "STABLE",
    )
    for table in ("invitations", "recovery_codes", "totps", "mails", "mail_tokens"):
        op.execute(f"DROP TABLE {table}")
    op.execute("REVOKE UPDATE, DELETE ON memberships FROM quorate_api")
    op.execute(
        "ALTER TABLE sessions DROP COLUMN authenticated_at, DROP COLUMN last_seen_at, DROP COLUMN address,"
        " DROP COLUMN user_agent"
    )
    op.execute("DROP INDEX sessions_user")
    op.execute("DROP INDEX users_verified_email")
    op.execute("DROP INDEX users_email")
    op.execute("ALTER TABLE users DROP COLUMN email_verified_at, ADD CONSTRAINT users_email_key UNIQUE (email)")
