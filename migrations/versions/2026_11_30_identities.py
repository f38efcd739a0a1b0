"""Identities of people at identity providers (OpenID Connect). They go with the person when its data is erased."""

from alembic import op

revision = "2026_11_30_identities"
down_revision = "2026_11_30_operators"
branch_labels = None
depends_on = None

# As in 2026_11_30_closures; `OF_PEOPLE` are the tables with rows of people.
ERASURE = (
    "CREATE OR REPLACE FUNCTION erase_organization(wanted uuid) RETURNS boolean"
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
    "{of_people}"
    " UPDATE users SET email = 'erased-' || id || '@invalid', password_hash = '', email_verified_at = NULL"
    " WHERE id = ANY (people);"
    " UPDATE organizations SET erased_at = now() WHERE organization_id = wanted;"
    " PERFORM set_config('app.erasing', '', true);"
    " RETURN true; END $$"
)
OF_PEOPLE = ("sessions", "passkeys", "totps", "recovery_codes", "mail_tokens")


def upgrade() -> None:
    op.execute(
        "CREATE TABLE identities ("
        "  id uuid PRIMARY KEY,"
        "  user_id uuid NOT NULL REFERENCES users,"
        "  provider text NOT NULL,"
        "  issuer text NOT NULL,"
        "  subject text NOT NULL CHECK (length(subject) BETWEEN 1 AND 255),"
        "  email text NOT NULL,"
        "  created_at timestamptz NOT NULL,"
        "  last_used_at timestamptz,"
        "  UNIQUE (issuer, subject)"
        ")"
    )
    op.execute("CREATE INDEX identities_user ON identities (user_id)")
    op.execute("GRANT SELECT, INSERT, DELETE ON identities TO quorate_api")
    op.execute("GRANT UPDATE (last_used_at) ON identities TO quorate_api")
    _erasure((*OF_PEOPLE, "identities"))


def _erasure(tables: tuple[str, ...]) -> None:
    deletions = "".join(f" DELETE FROM {table} WHERE user_id = ANY (people);" for table in tables)
    op.execute(ERASURE.format(of_people=deletions))


def downgrade() -> None:
    _erasure(OF_PEOPLE)
    op.execute("DROP TABLE identities")
