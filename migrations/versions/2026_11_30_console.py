"""For the operators' console: answers to admissions, requests for greater quotas, and quotas set by operators."""

from alembic import op

revision = "2026_11_30_console"
down_revision = "2026_11_30_audit_copies"
branch_labels = None
depends_on = None

TABLES = (
    "CREATE TABLE admissions ("
    "  id uuid PRIMARY KEY,"
    "  organization_id uuid NOT NULL REFERENCES organizations,"
    "  at timestamptz NOT NULL,"
    "  operation text NOT NULL,"
    "  subject text NOT NULL,"
    "  asked jsonb NOT NULL,"
    "  outcome text NOT NULL CHECK (outcome IN ('admitted', 'refused')),"
    # A refusal has the problem's code, the fleet's reason with the scarce resource, and the customer's sentence.
    "  code text,"
    "  reason text,"
    "  scarce_resource text,"
    "  message text"
    ")",
    "CREATE TABLE quota_requests ("
    "  organization_id uuid NOT NULL REFERENCES organizations,"
    "  code text NOT NULL,"
    "  wanted bigint NOT NULL CHECK (wanted >= 1),"
    "  reason text NOT NULL,"
    "  asked_by uuid NOT NULL REFERENCES users,"
    "  created_at timestamptz NOT NULL,"
    "  PRIMARY KEY (organization_id, code)"
    ")",
)
ADMISSION = (
    "id uuid, organization_id uuid, organization_name text, at timestamptz, operation text, subject text, asked jsonb,"
    " outcome text, code text, reason text, scarce_resource text, message text"
)
REQUEST = (
    "organization_id uuid, organization_name text, code text, wanted bigint, reason text, asked_by text,"
    " created_at timestamptz"
)


def upgrade() -> None:
    for statement in TABLES:
        op.execute(statement)
    op.execute("CREATE INDEX admissions_organization ON admissions (organization_id)")
    for table in ("admissions", "quota_requests"):
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(
            f"CREATE POLICY own_organization ON {table} TO quorate_api"
            " USING (organization_id = current_organization_id())"
        )
        op.execute(f"CREATE POLICY every_organization ON {table} TO quorate_worker USING (true)")
    op.execute("GRANT SELECT, INSERT ON admissions TO quorate_api")
    op.execute("GRANT SELECT, DELETE ON admissions TO quorate_worker")
    op.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON quota_requests TO quorate_api")
    op.execute("GRANT INSERT, UPDATE, DELETE ON quota_overrides TO quorate_api")
    _function(
        "find_admissions(wanted text, after uuid, most bigint)",
        ADMISSION,
        "SELECT a.id, a.organization_id, o.name, a.at, a.operation, a.subject, a.asked, a.outcome, a.code, a.reason,"
        " a.scarce_resource, a.message FROM admissions a JOIN organizations o USING (organization_id)"
        " WHERE (wanted IS NULL OR a.outcome = wanted) AND (after IS NULL OR a.id < after) ORDER BY a.id DESC"
        " LIMIT most",
    )
    _function(
        "count_admissions(since timestamptz)",
        "outcome text, code text, reason text, scarce_resource text, count bigint",
        "SELECT a.outcome, a.code, a.reason, a.scarce_resource, count(*) FROM admissions a WHERE a.at >= since"
        " GROUP BY 1, 2, 3, 4 ORDER BY 5 DESC, 1, 2, 3, 4",
    )
    _function(
        "find_replicas(server bigint, after uuid, most bigint)",
        "group_id uuid, name text, organization_id uuid, organization_name text, status text, role text,"
        " is_learner boolean, rate_per_s bigint, durability text",
        "SELECT g.id, g.name, g.organization_id, o.name, g.status, r.replica ->> 'role', r.is_learner, g.rate_per_s,"
        " g.sla ->> 'durability' FROM groups g JOIN organizations o USING (organization_id) CROSS JOIN LATERAL ("
        " SELECT e AS replica, false AS is_learner FROM jsonb_array_elements(g.replicas) e UNION ALL"
        " SELECT e, true FROM jsonb_array_elements(g.learners) e) r WHERE g.deleted_at IS NULL"
        " AND (r.replica ->> 'server_id')::bigint = server AND (after IS NULL OR g.id < after)"
        " ORDER BY g.id DESC LIMIT most",
    )
    _function(
        "find_quota_requests()",
        REQUEST,
        "SELECT q.organization_id, o.name, q.code, q.wanted, q.reason, u.email, q.created_at FROM quota_requests q"
        " JOIN organizations o USING (organization_id) JOIN users u ON u.id = q.asked_by"
        " ORDER BY q.created_at LIMIT 500",
    )


def _function(signature: str, columns: str, body: str) -> None:
    op.execute(
        f"CREATE FUNCTION {signature} RETURNS TABLE ({columns})"
        f" LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$ {body} $$"
    )
    name = signature.partition("(")[0]
    op.execute(f"REVOKE EXECUTE ON FUNCTION {name} FROM PUBLIC")
    op.execute(f"GRANT EXECUTE ON FUNCTION {name} TO quorate_api")


def downgrade() -> None:
    for name in ("find_quota_requests", "find_replicas", "count_admissions", "find_admissions"):
        op.execute(f"DROP FUNCTION {name}")
    op.execute("REVOKE INSERT, UPDATE, DELETE ON quota_overrides FROM quorate_api")
    op.execute("DROP TABLE quota_requests")
    op.execute("DROP TABLE admissions")
