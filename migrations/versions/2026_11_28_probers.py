"""Probers' minutes: servers, seen from where clients are."""

from alembic import op

revision = "2026_11_28_probers"
down_revision = "2026_11_28_packed_hours"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # `failed`: server → [[from_ms, to_ms], …], of servers that failed. `late`: its hour may have been judged before.
    op.execute(
        "CREATE TABLE prober_minutes ("
        "  minute_s bigint NOT NULL CHECK (minute_s % 60 = 0),"
        "  prober text NOT NULL,"
        "  watched bigint[] NOT NULL,"
        "  failed jsonb NOT NULL,"
        "  late boolean NOT NULL,"
        "  received_at timestamptz NOT NULL,"
        "  PRIMARY KEY (minute_s, prober)"
        ")"
    )
    op.execute("CREATE INDEX prober_minutes_failed ON prober_minutes (minute_s) WHERE failed <> '{}'")
    op.execute("CREATE INDEX prober_minutes_late ON prober_minutes (minute_s) WHERE late")
    op.execute("GRANT SELECT, INSERT ON prober_minutes TO quorate_api")
    op.execute("GRANT SELECT, UPDATE, DELETE ON prober_minutes TO quorate_worker")
    op.execute(
        "ALTER TABLE sla_bad_minutes ADD COLUMN unreachable_ms bigint NOT NULL DEFAULT 0 CHECK (unreachable_ms >= 0)"
    )


def downgrade() -> None:
    # Minutes that clients could not reach stay bad in hours that are judged.
    op.execute("ALTER TABLE sla_bad_minutes DROP COLUMN unreachable_ms")
    op.execute("DROP TABLE prober_minutes")
