"""Events that customers may be told of, and webhooks: where they are delivered to."""

from alembic import op

revision = "2026_11_30_webhooks"
down_revision = "2026_11_30_passkeys"
branch_labels = None
depends_on = None

TABLES = ("events", "webhooks", "webhook_secrets", "webhook_deliveries")


def upgrade() -> None:
    op.execute(
        "CREATE TABLE events ("
        "  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
        "  id uuid NOT NULL UNIQUE,"
        "  organization_id uuid NOT NULL REFERENCES organizations,"
        "  type text NOT NULL,"
        "  key text NOT NULL,"
        "  at timestamptz NOT NULL,"
        "  data jsonb NOT NULL,"
        "  for_webhook_id uuid,"
        "  dispatched_at timestamptz,"
        "  UNIQUE (organization_id, type, key)"
        ")"
    )
    op.execute("CREATE INDEX events_organization ON events (organization_id, seq)")
    op.execute("CREATE INDEX events_waiting ON events (seq) WHERE dispatched_at IS NULL")
    op.execute("CREATE INDEX events_at ON events (at)")
    op.execute(
        "CREATE TABLE webhooks ("
        "  id uuid PRIMARY KEY,"
        "  organization_id uuid NOT NULL REFERENCES organizations,"
        "  url text NOT NULL CHECK (length(url) <= 2048),"
        "  description text NOT NULL,"
        "  event_types text[] NOT NULL,"
        "  status text NOT NULL CHECK (status IN ('enabled', 'paused', 'disabled')),"
        "  failing_since timestamptz,"
        "  row_version bigint NOT NULL DEFAULT 1,"
        "  created_at timestamptz NOT NULL,"
        "  updated_at timestamptz NOT NULL,"
        "  UNIQUE (organization_id, id)"
        ")"
    )
    op.execute(
        "CREATE TABLE webhook_secrets ("
        "  id uuid PRIMARY KEY,"
        "  organization_id uuid NOT NULL,"
        "  webhook_id uuid NOT NULL,"
        "  sealed bytea NOT NULL,"
        "  created_at timestamptz NOT NULL,"
        "  ends_at timestamptz,"
        "  FOREIGN KEY (organization_id, webhook_id) REFERENCES webhooks (organization_id, id) ON DELETE CASCADE"
        ")"
    )
    op.execute("CREATE INDEX webhook_secrets_webhook ON webhook_secrets (webhook_id)")
    op.execute(
        "CREATE TABLE webhook_deliveries ("
        "  id uuid PRIMARY KEY,"
        "  organization_id uuid NOT NULL,"
        "  webhook_id uuid NOT NULL,"
        "  event_seq bigint NOT NULL REFERENCES events ON DELETE CASCADE,"
        "  status text NOT NULL CHECK (status IN ('waiting', 'delivered', 'failed')),"
        "  attempts bigint NOT NULL CHECK (attempts >= 0),"
        "  next_at timestamptz,"
        "  last_at timestamptz,"
        "  last_http_status bigint,"
        "  last_error text,"
        "  last_duration_ms bigint,"
        "  created_at timestamptz NOT NULL,"
        "  UNIQUE (webhook_id, event_seq),"
        "  FOREIGN KEY (organization_id, webhook_id) REFERENCES webhooks (organization_id, id) ON DELETE CASCADE,"
        "  CHECK ((status = 'waiting') = (next_at IS NOT NULL))"
        ")"
    )
    op.execute("CREATE INDEX webhook_deliveries_due ON webhook_deliveries (next_at) WHERE status = 'waiting'")
    op.execute("CREATE INDEX webhook_deliveries_event ON webhook_deliveries (event_seq)")
    for table in TABLES:
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(
            f"CREATE POLICY own_organization ON {table} TO quorate_api"
            " USING (organization_id = current_organization_id())"
        )
        op.execute(f"CREATE POLICY every_organization ON {table} TO quorate_worker USING (true)")
    op.execute("GRANT SELECT, INSERT ON events TO quorate_api")
    op.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON webhooks, webhook_secrets, webhook_deliveries TO quorate_api")
    op.execute("GRANT SELECT, INSERT, DELETE ON events TO quorate_worker")
    op.execute("GRANT UPDATE (dispatched_at) ON events TO quorate_worker")
    op.execute("GRANT SELECT ON webhooks, webhook_secrets TO quorate_worker")
    op.execute("GRANT UPDATE (status, failing_since, row_version, updated_at) ON webhooks TO quorate_worker")
    op.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON webhook_deliveries TO quorate_worker")


def downgrade() -> None:
    for table in ("webhook_deliveries", "webhook_secrets", "webhooks", "events"):
        op.execute(f"DROP TABLE {table}")
