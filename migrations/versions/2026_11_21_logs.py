"""Usage is counted for each log of a group separately."""

from alembic import op

revision = "2026_11_21_logs"
down_revision = "2026_11_20_initial"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Existing rows were counted without a log's number. They belong to the first log.
    op.execute(
        "ALTER TABLE usage_windows ADD COLUMN log_epoch bigint DEFAULT 0 NOT NULL"
        " CONSTRAINT usage_windows_log_epoch_check CHECK (log_epoch >= 0)"
    )
    op.execute("ALTER TABLE usage_windows ALTER COLUMN log_epoch DROP DEFAULT")


def downgrade() -> None:
    raise RuntimeError("One counter cannot hold the entries of several logs; restore a backup instead.")
