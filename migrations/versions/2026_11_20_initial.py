"""Accounts, groups, usage, invoices and the ledger."""

from pathlib import Path

from alembic import op

revision = "2026_11_20_initial"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    # The SQL is in a file of its own, so that editors and reviewers see SQL.
    # Without parameters psycopg leaves percent signs unchanged.
    sql = (Path(__file__).parent / "2026_11_20_initial.sql").read_text()
    op.get_bind().connection.cursor().execute(sql)


def downgrade() -> None:
    raise RuntimeError("The first migration has nothing before it; restore a backup instead.")
