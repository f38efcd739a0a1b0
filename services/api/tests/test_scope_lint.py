"""SQL is in repositories only, and an organization's rows are queried through the scope only."""

import ast
import gc
from pathlib import Path

import pytest

import quorate_api
from quorate_api.database.tables import OWNED, metadata

SOURCE = Path(quorate_api.__file__).parent
BUILDERS = {"select", "insert", "update", "delete", "upsert", "text", "exists", "union", "union_all"}
# Files besides repositories that may build statements.
TABLES = {f"database/tables/{path.name}" for path in (SOURCE / "database" / "tables").glob("*.py")}
MAY_BUILD = {"database/scope.py", "database/engine.py", "database/logins.py", *TABLES}
# Tables without an owner may be queried directly, in repositories.
FREE = {table for table in metadata.tables if table not in OWNED}


def _parse(source: str) -> ast.Module:
    """Parse without the garbage collector: Python 3.11's parser miscounts its depth if one runs inside."""
    gc.disable()
    try:
        return ast.parse(source)
    finally:
        gc.enable()


def violations(source: str, path: str) -> list[str]:
    tree = _parse(source)
    in_repository = path.endswith("/repository.py")
    builders = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sqlalchemy")
        for alias in node.names
        if alias.name in BUILDERS
    }
    owned = OWNED | {
        alias.asname
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "quorate_api.database.tables"
        for alias in node.names
        if alias.asname and alias.name in OWNED
    }
    found = []
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.ImportFrom)
            and (node.module or "").startswith("quorate_api.database")
            and {alias.name for alias in node.names} & {*metadata.tables, "tables", "metadata"}
            and not in_repository
            and path not in MAY_BUILD
        ):
            found.append(f"{path}:{node.lineno}: imports tables outside of a repository")
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id in builders:
            if path not in MAY_BUILD and not in_repository:
                found.append(f"{path}:{node.lineno}: builds SQL outside of a repository")
            used = {child.id for argument in node.args for child in ast.walk(argument) if isinstance(child, ast.Name)}
            if path not in MAY_BUILD and used & owned:
                found.append(f"{path}:{node.lineno}: {node.func.id} on {used & owned} without a scope")
        if isinstance(node.func, ast.Attribute):
            if node.func.attr in ("exec_driver_sql", "text"):
                if path not in MAY_BUILD:
                    found.append(f"{path}:{node.lineno}: raw SQL")
            elif node.func.attr in ("select", "insert", "update", "delete", "join"):
                owner = node.func.value
                if in_repository and isinstance(owner, ast.Name) and owner.id in owned:
                    found.append(f"{path}:{node.lineno}: {owner.id}.{node.func.attr} without a scope")
            elif node.func.attr == "execute" and path not in MAY_BUILD and not in_repository:
                found.append(f"{path}:{node.lineno}: executes SQL outside of a repository")
    return found


def sources() -> list[str]:
    # `embedded` and `migrate` create databases and see no customers' data.
    skipped = ("embedded/", "database/migrate.py")
    paths = [path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py")]
    return sorted(path for path in paths if not path.startswith(skipped))


@pytest.mark.parametrize("path", sources())
def test_sources(path: str) -> None:
    assert violations((SOURCE / path).read_text(), path) == []


@pytest.mark.parametrize(
    "bad",
    [
        "from sqlalchemy import select\nselect(groups).where(groups.c.id == x)",
        "from sqlalchemy import select\nselect(groups.c.id, groups.c.name)",
        "from sqlalchemy import select, func\nselect(func.max(usage_windows.c.epoch))",
        "from sqlalchemy import delete as remove, delete\ndelete(sessions)",
        "from sqlalchemy.dialects.postgresql import insert\ninsert(projects).values(x=1)",
        "groups.update().values(name='x')",
        "groups.select()",
        "from sqlalchemy import select\nfrom quorate_api.database.tables import groups as g\nselect(g)",
        "import sqlalchemy\nsqlalchemy.text('SELECT 1')",
        "connection.exec_driver_sql('SELECT * FROM groups')",
    ],
)
def test_the_lint_sees_what_goes_round_the_scope(bad: str) -> None:
    assert violations(bad, "groups/repository.py") != []


@pytest.mark.parametrize(
    "bad",
    [
        "from sqlalchemy import text\ntext('SELECT 1')",
        "from quorate_api.database.tables import users",
        "from quorate_api.database import tables",
        "await work.connection.execute(statement)",
    ],
)
def test_the_lint_sees_sql_outside_of_repositories(bad: str) -> None:
    assert violations(bad, "groups/service.py") != []


def test_free_tables_are_the_ones_meant() -> None:
    of_everybody = {
        "users",
        "mail_tokens",
        "mails",
        "totps",
        "recovery_codes",
        "passkeys",
        "identities",
        "answered_challenges",
        "coordinator_cursor",
        "operator_events",
        "uncopied_events",
        "idempotency_keys",
        "rejected_usage",
        "document_counters",
        "settled_times",
        "prober_minutes",
    }
    status = {"sla_region_hours", "status_hours", "status_regions", "status_incidents", "status_updates"}
    assert of_everybody | status | {"settled_times"} == FREE
