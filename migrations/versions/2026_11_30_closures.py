"""Organizations that are suspended by operators, or closed by their owners and erased later."""

from alembic import op

revision = "2026_11_30_closures"
down_revision = "2026_11_30_webhooks"
branch_labels = None
depends_on = None

SESSION = (
    "id uuid, organization_id uuid, user_id uuid, expires_at timestamptz, role text, tokens_until timestamptz,"
    " authenticated_at timestamptz, last_seen_at timestamptz"
)
OF_SESSION = (
    "s.id, s.organization_id, s.user_id, s.expires_at, m.role, s.tokens_until, s.authenticated_at, s.last_seen_at"
)
FROM_SESSION = "FROM sessions s JOIN memberships m USING (organization_id, user_id)"
KEY = (
    "id uuid, organization_id uuid, project_id uuid, scopes text[], revoked_at timestamptz, last_used_at timestamptz,"
    " credential_id uuid, ends_at timestamptz, tokens_until timestamptz"
)
OF_KEY = (
    "k.id, k.organization_id, k.project_id, k.scopes, k.revoked_at, k.last_used_at, s.id,"
    " least(k.expires_at, s.ends_at), s.tokens_until"
)
FROM_KEY = "FROM api_key_secrets s JOIN api_keys k ON k.id = s.key_id"
ORGANIZATION = "JOIN organizations o USING (organization_id)"


def upgrade() -> None:
    op.execute(
        "ALTER TABLE organizations"
        "  ADD COLUMN suspended_at timestamptz,"
        "  ADD COLUMN suspension_reason text,"
        "  ADD COLUMN closing_at timestamptz,"
        "  ADD COLUMN closes_at timestamptz,"
        "  ADD COLUMN closed_at timestamptz,"
        "  ADD COLUMN erased_at timestamptz,"
        "  ADD CHECK ((closing_at IS NULL) = (closes_at IS NULL)),"
        "  ADD CHECK (closed_at IS NULL OR closing_at IS NOT NULL),"
        "  ADD CHECK (erased_at IS NULL OR closed_at IS NOT NULL)"
    )
    op.execute(
        "ALTER TABLE organizations ADD COLUMN standing text NOT NULL GENERATED ALWAYS AS ("
        "CASE WHEN closed_at IS NOT NULL THEN 'closed' WHEN suspended_at IS NOT NULL THEN 'suspended'"
        " WHEN closing_at IS NOT NULL THEN 'closing' ELSE 'active' END) STORED"
    )
    op.execute("CREATE INDEX organizations_not_active ON organizations (organization_id) WHERE standing <> 'active'")
    op.execute("GRANT UPDATE (closed_at) ON organizations TO quorate_worker")
    for name in ("find_session", "find_api_key"):
        op.execute(f"DROP FUNCTION {name}")
    _function(
        "find_session(wanted bytea)",
        f"{SESSION}, standing text",
        f"SELECT {OF_SESSION}, o.standing {FROM_SESSION} {ORGANIZATION} WHERE s.token_hmac = wanted",
    )
    _function(
        "find_api_key(wanted bytea)",
        f"{KEY}, standing text",
        f"SELECT {OF_KEY}, o.standing {FROM_KEY} JOIN organizations o ON o.organization_id = k.organization_id"
        " WHERE s.secret_hmac = wanted",
    )
    _function(
        "find_organizations(search text, after uuid, most bigint)",
        "organization_id uuid, name text, created_at timestamptz, standing text, members bigint, groups bigint,"
        " rate_per_s bigint, hourly_micros bigint",
        "SELECT o.organization_id, o.name, o.created_at, o.standing,"
        " (SELECT count(*) FROM memberships m WHERE m.organization_id = o.organization_id), coalesce(g.groups, 0),"
        " coalesce(g.rate_per_s, 0)::bigint, coalesce(g.hourly_micros, 0)::bigint FROM organizations o"
        " LEFT JOIN LATERAL (SELECT count(*) FILTER (WHERE partition_of IS NULL) AS groups, sum(rate_per_s)"
        " AS rate_per_s, sum(hourly_micros) AS hourly_micros FROM groups g WHERE"
        " g.organization_id = o.organization_id AND g.deleted_at IS NULL) g ON true WHERE o.erased_at IS NULL"
        " AND (after IS NULL OR o.organization_id < after) AND (search IS NULL OR strpos(lower(o.name),"
        " lower(search)) > 0 OR o.organization_id::text = search OR EXISTS (SELECT FROM memberships m JOIN users u"
        " ON u.id = m.user_id WHERE m.organization_id = o.organization_id AND u.email = lower(search)))"
        " ORDER BY o.organization_id DESC LIMIT most",
    )
    _erasure()


def _erasure() -> None:
    # The owner of the tables alone gets past: the function below runs as it, and sets this for its transaction.
    op.execute(
        "CREATE OR REPLACE FUNCTION refuse_rewriting() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " IF TG_TABLE_NAME = 'audit_events' AND TG_OP = 'DELETE'"
        " AND current_setting('app.erasing', true) IS NOT NULL AND current_setting('app.erasing', true) <> ''"
        " AND current_user = (SELECT tableowner FROM pg_tables WHERE schemaname = 'public'"
        " AND tablename = 'audit_events') THEN RETURN NULL; END IF;"
        " RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END $$"
    )
    op.execute(
        "CREATE FUNCTION erase_organization(wanted uuid) RETURNS boolean"
        " LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$"
        " DECLARE people uuid[]; BEGIN"
        " PERFORM FROM organizations o WHERE o.organization_id = wanted AND o.closed_at IS NOT NULL"
        " AND o.erased_at IS NULL FOR UPDATE;"
        " IF NOT FOUND THEN RETURN false; END IF;"
        " PERFORM set_config('app.erasing', wanted::text, true);"
        " SELECT array_agg(m.user_id) INTO people FROM memberships m WHERE m.organization_id = wanted"
        " AND NOT EXISTS (SELECT FROM memberships x WHERE x.user_id = m.user_id AND x.organization_id <> wanted);"
        " DELETE FROM audit_events WHERE organization_id = wanted;"
        " DELETE FROM webhooks WHERE organization_id = wanted;"
        " DELETE FROM events WHERE organization_id = wanted;"
        " DELETE FROM invitations WHERE organization_id = wanted;"
        " DELETE FROM sessions WHERE organization_id = wanted;"
        " DELETE FROM memberships WHERE organization_id = wanted;"
        " DELETE FROM api_key_secrets WHERE organization_id = wanted;"
        " UPDATE api_keys SET name = 'erased', revoked_at = coalesce(revoked_at, now())"
        " WHERE organization_id = wanted;"
        " DELETE FROM sessions WHERE user_id = ANY (people);"
        " DELETE FROM passkeys WHERE user_id = ANY (people);"
        " DELETE FROM totps WHERE user_id = ANY (people);"
        " DELETE FROM recovery_codes WHERE user_id = ANY (people);"
        " DELETE FROM mail_tokens WHERE user_id = ANY (people);"
        " UPDATE users SET email = 'erased-' || id || '@invalid', password_hash = '', email_verified_at = NULL"
        " WHERE id = ANY (people);"
        " UPDATE organizations SET erased_at = now() WHERE organization_id = wanted;"
        " PERFORM set_config('app.erasing', '', true);"
        " RETURN true; END $$"
    )
    op.execute("REVOKE EXECUTE ON FUNCTION erase_organization FROM PUBLIC")
    op.execute("GRANT EXECUTE ON FUNCTION erase_organization TO quorate_worker")


def _function(signature: str, columns: str, body: str) -> None:
    op.execute(
        f"CREATE FUNCTION {signature} RETURNS TABLE ({columns})"
        f" LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$ {body} $$"
    )
    name = signature.partition("(")[0]
    op.execute(f"REVOKE EXECUTE ON FUNCTION {name} FROM PUBLIC")
    op.execute(f"GRANT EXECUTE ON FUNCTION {name} TO quorate_api")


def downgrade() -> None:
    for name in ("erase_organization", "find_organizations", "find_session", "find_api_key"):
        op.execute(f"DROP FUNCTION {name}")
    op.execute(
        "CREATE OR REPLACE FUNCTION refuse_rewriting() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END $$"
    )
    _function("find_session(wanted bytea)", SESSION, f"SELECT {OF_SESSION} {FROM_SESSION} WHERE s.token_hmac = wanted")
    _function("find_api_key(wanted bytea)", KEY, f"SELECT {OF_KEY} {FROM_KEY} WHERE s.secret_hmac = wanted")
    op.execute(
        "ALTER TABLE organizations DROP COLUMN standing, DROP COLUMN erased_at, DROP COLUMN closed_at,"
        " DROP COLUMN closes_at, DROP COLUMN closing_at, DROP COLUMN suspension_reason, DROP COLUMN suspended_at"
    )
