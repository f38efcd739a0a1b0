"""A stack whose database is filled with groups of a year's age, by SQL."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg

from quorate_api.embedded import postgres
from quorate_api.limits import USAGE_DAYS_KEPT
from quorate_harness.customer import Customer
from quorate_local import Stack, StackOptions
from quorate_local.display import Display

SQL = Path(__file__).parent / "sql"
FILL, WINDOWS = SQL / "fill.sql", SQL / "windows.sql"
MONTHS = 13
DEGREE = 3  # replicas of the groups with all their minutes
DAY_S, HOUR_S, WINDOW_S = 86_400, 3_600, 60
CACHE_MB = 1_024  # of PostgreSQL: the embedded one's is for a handful of groups
CUSTOMERS = 20  # that log in; the first one has a tenth of all groups
LARGE_SHARE = 10
SMALL_GROUPS = 10  # for each organization that nobody logs in to
WINDOWS_GROUPS = 3  # for each customer, with all their minutes
SLA = {"durability": "in_memory", "replication_degree": 1, "request_size_bytes": 64, "rate_per_s": 1_000}
# Commit latencies of a day: bucket → count.
LATENCY = {str(bucket): 80_000 - 6_000 * step for step, bucket in enumerate(range(250, 262))}


@dataclass
class World:
    """`groups`: of each customer, those with all their minutes first."""

    stack: Stack
    owner_url: str
    postgres_pid: int
    folder: Path  # of logs
    display: Display
    customers: list[Customer] = field(default_factory=list)
    groups: dict[str, list[str]] = field(default_factory=dict)
    count: int = 0
    window_bytes: float = 0.0  # one minute of one replica, before it is packed

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.owner_url, autocommit=True)

    def grow(self, count: int) -> None:
        """Fill it up to so many groups."""
        more = count - self.count
        if not self.customers:
            self.customers = [Customer(self.stack.api_url, f"scale-{number}") for number in range(CUSTOMERS)]
            self._template = self.customers[0].create_group("template", SLA)["id"]
        large, medium = more // LARGE_SHARE, more // LARGE_SHARE // CUSTOMERS * 2
        counts = [large] + [medium] * (CUSTOMERS - 1)
        others = (more - sum(counts)) // SMALL_GROUPS
        with self.connect() as connection:
            mine = [self._organization(connection, customer) for customer in self.customers]
            owners = [*mine, *self._organizations(connection, others)]
            self._fill(connection, owners, [*counts, *[SMALL_GROUPS] * others])
            if self.count == 0:
                self._add_windows(connection, mine)
            connection.execute("ANALYZE")
        self.count = count
        self.display.line(f"  {count} groups, {MONTHS} months")

    def _organization(self, connection: psycopg.Connection[Any], customer: Customer) -> UUID:
        row = connection.execute("SELECT organization_id FROM projects WHERE id = %s", [customer.project_id]).fetchone()
        assert row is not None, "it signed up"
        return UUID(str(row[0]))

    def _organizations(self, connection: psycopg.Connection[Any], count: int) -> list[UUID]:
        made = [uuid4() for _ in range(count)]
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO organizations (organization_id, name, created_at) VALUES (%s, 'filled', now())",
                [(each,) for each in made],
            )
            cursor.executemany(
                "INSERT INTO projects (id, organization_id, name, created_at) VALUES (%s, %s, 'filled', now())",
                [(uuid4(), each) for each in made],
            )
        return made

    def _fill(
        self,
        connection: psycopg.Connection[Any],
        owners: list[UUID],
        counts: list[int],
        begin: datetime | None = None,
    ) -> None:
        """`begin`: the first day of the groups; None: so many months ago."""
        now = datetime.now(UTC)
        today_s = int(now.timestamp()) // DAY_S * DAY_S
        month = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        if begin is None:
            begin = month
            for _ in range(MONTHS - 1):
                begin = (begin - timedelta(days=1)).replace(day=1)
        bounds = {
            "owners": owners,
            "counts": counts,
            "template": self._template,
            "begin_s": int(begin.timestamp()),
            "today_s": today_s,
            "hours_from_s": today_s - (USAGE_DAYS_KEPT + 1) * DAY_S,
            "hours_to_s": int(now.timestamp()) // HOUR_S * HOUR_S - HOUR_S,
            "month": month,
            "latency": json.dumps(LATENCY),
        }
        _run(connection, FILL, bounds)

    def _add_windows(self, connection: psycopg.Connection[Any], owners: list[UUID]) -> None:
        """Every minute of the days that are kept, for some groups of each customer."""
        now_s = int(datetime.now(UTC).timestamp())
        today_s = now_s // DAY_S * DAY_S
        for day_s in range(today_s - USAGE_DAYS_KEPT * DAY_S, today_s + DAY_S, DAY_S):
            connection.execute("SELECT ensure_usage_day(%s)", [day_s])
        for customer, owner in zip(self.customers, owners, strict=True):
            rows = connection.execute(
                "SELECT id FROM groups WHERE organization_id = %s AND id <> %s ORDER BY id", [owner, self._template]
            ).fetchall()
            self.groups[customer.organization] = [str(row[0]) for row in rows]
            bounds = {
                "from_s": today_s - USAGE_DAYS_KEPT * DAY_S,
                "to_s": now_s // WINDOW_S * WINDOW_S - WINDOW_S,
                "groups": self.groups[customer.organization][:WINDOWS_GROUPS],
            }
            _run(connection, WINDOWS, bounds)
        self.window_bytes = _window_bytes(connection)

    def add_small(self, connection: psycopg.Connection[Any], count: int, begin: datetime) -> None:
        """Add organizations with one group each that began then, and the use of its days."""
        owners = self._organizations(connection, count)
        self._fill(connection, owners, [1] * count, begin)
        connection.execute("UPDATE organizations SET closed_until = NULL WHERE organization_id = ANY (%s)", [owners])

    def close(self) -> None:
        for customer in self.customers:
            customer.close()


def _run(connection: psycopg.Connection[Any], script: Path, bounds: dict[str, Any]) -> None:
    with connection.transaction():
        # The bills add up, and checking each line against its whole invoice takes hours.
        connection.execute("SET LOCAL session_replication_role = replica")
        for statement in script.read_text().split(";\n"):
            if statement.strip():
                connection.execute(statement, bounds)


def _window_bytes(connection: psycopg.Connection[Any]) -> float:
    """Bytes of one minute of one replica, as a row."""
    row = connection.execute(
        "SELECT (SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree('usage_windows') WHERE isleaf)"
        " / (SELECT count(*) FROM usage_windows)"
    ).fetchone()
    assert row is not None, "a sum has a row"
    return float(row[0])


@contextmanager
def world(folder: Path, display: Display) -> Iterator[World]:
    """The stack's worker is stopped: nothing else runs while queries are measured."""
    data = folder / "postgres"
    state = folder / "state"
    Stack(StackOptions(state=state)).wipe()
    postgres.stop(data)
    if data.exists():
        shutil.rmtree(data)  # of an interrupted run
    url = postgres.start(data, cache_mb=CACHE_MB)
    stack = Stack(StackOptions.from_environment(state=state, servers=1, workers=1, database_url=url), display)
    pid = postgres.pid(data)
    assert pid is not None, "it was started"
    made = World(stack, url, pid, folder, display)
    try:
        stack.start()
        stack.crash("worker")
        yield made
    finally:
        made.close()
        stack.stop()
        postgres.stop(data)
        shutil.rmtree(data)  # tens of gigabytes at full size
