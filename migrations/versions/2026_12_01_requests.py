"""Requests for quotas and the log of admissions: erased with their organization, and not shown once it closes.

The pool of organizations without a verified address counts what it bounds: no overrides, and pending resizes."""

from alembic import op

revision = "2026_12_01_requests"
down_revision = "2026_12_01_settings"
branch_labels = None
depends_on = None

# As in 2026_11_30_identities; `of_organization` names tables whose rows are deleted whole.
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
    "{of_organization}"
    " UPDATE api_keys SET name = 'erased', revoked_at = coalesce(revoked_at, now())"
    " WHERE organization_id = wanted;"
    "{of_people}"
    " UPDATE users SET email = 'erased-' || id || '@invalid', password_hash = '', email_verified_at = NULL"
    " WHERE id = ANY (people);"
    " UPDATE organizations SET erased_at = now() WHERE organization_id = wanted;"
    " PERFORM set_config('app.erasing', '', true);"
    " RETURN true; END $$"
)
OF_ORGANIZATION = (
    "audit_events", "webhooks", "events", "invitations", "sessions", "memberships", "api_key_secrets",
)  # fmt: skip
NEWLY_ERASED = ("quota_requests", "admissions")
OF_PEOPLE = ("sessions", "passkeys", "totps", "recovery_codes", "mail_tokens", "identities")
REQUEST = (
    "organization_id uuid, organization_name text, code text, wanted bigint, reason text, asked_by text,"
    " created_at timestamptz"
)
REQUESTS = (
    "SELECT q.organization_id, o.name, q.code, q.wanted, q.reason, u.email, q.created_at FROM quota_requests q"
    " JOIN organizations o USING (organization_id) JOIN users u ON u.id = q.asked_by{where}"
    " ORDER BY q.created_at LIMIT 500"
)
UNVERIFIED = (
    "SELECT coalesce(sum({rate}), 0)::bigint FROM groups g WHERE g.deleted_at IS NULL"
    " AND NOT EXISTS (SELECT FROM memberships m JOIN users u ON u.id = m.user_id"
    " WHERE m.organization_id = g.organization_id AND m.role = 'owner' AND u.email_verified_at IS NOT NULL){where}"
)
GREATER = "greatest(g.rate_per_s, coalesce((g.resize -> 'sla' ->> 'rate_per_s')::bigint, 0))"
NOT_SET = (
    " AND NOT EXISTS (SELECT FROM quota_overrides v WHERE v.organization_id = g.organization_id"
    " AND v.code = 'total_rate_per_s')"
)


def upgrade() -> None:
    _erasure((*OF_ORGANIZATION, *NEWLY_ERASED))
    for table in NEWLY_ERASED:  # earlier erasures have left rows
        op.execute(
            f"DELETE FROM {table} x USING organizations o"
            " WHERE o.organization_id = x.organization_id AND o.erased_at IS NOT NULL"
        )
    # Closed and erased organizations have `closing_at`, too.
    _function("find_quota_requests()", REQUEST, REQUESTS.format(where=" WHERE o.closing_at IS NULL"))
    _function("unverified_rate_per_s()", "rate_per_s bigint", UNVERIFIED.format(rate=GREATER, where=NOT_SET))


def _erasure(tables: tuple[str, ...]) -> None:
    # quota_requests has a column `wanted`, too.
    mine = "organization_id = erase_organization.wanted"
    of_organization = "".join(f" DELETE FROM {table} WHERE {mine};" for table in tables)
    of_people = "".join(f" DELETE FROM {table} WHERE user_id = ANY (people);" for table in OF_PEOPLE)
    op.execute(ERASURE.format(of_organization=of_organization, of_people=of_people))


def _function(signature: str, columns: str, body: str) -> None:
    """Replace a function. Its grants stay."""
    op.execute(
        f"CREATE OR REPLACE FUNCTION {signature} RETURNS TABLE ({columns})"
        f" LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$ {body} $$"
    )


def downgrade() -> None:
    _function("unverified_rate_per_s()", "rate_per_s bigint", UNVERIFIED.format(rate="g.rate_per_s", where=""))
    _function("find_quota_requests()", REQUEST, REQUESTS.format(where=""))
    _erasure(OF_ORGANIZATION)
