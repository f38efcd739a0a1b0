"""The close of a month of many organizations, which is killed in the middle and goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

from quorate_harness.fleet import MeasurementFailed
from quorate_local import components
from quorate_scale.world import World

KILLED_AT = 3  # after a third of the organizations
TIMEOUT_S = 1_800
POLL_S = 0.2


@dataclass(frozen=True)
class Closed:
    """`off`: organizations without exactly one invoice of the month."""

    organizations: int
    elapsed_s: float
    killed_after: int
    off: int


def measure(world: World, organizations: int) -> Closed:
    """The last month is open in all organizations. `elapsed_s` is of both runs."""
    now = datetime.now(UTC)
    until = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    month = (until - timedelta(days=1)).replace(day=1)
    with world.connect() as connection:
        count = _reopen(world, connection, month, organizations)
        begun = time.monotonic()
        process = _start(world)
        killed_after = _until(connection, month, process, count // KILLED_AT)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        spent = time.monotonic() - begun
        world.display.line(f"    killed after {killed_after} of {count} organizations")
        begun = time.monotonic()
        process = _start(world)
        if process.wait(TIMEOUT_S) != 0:
            raise MeasurementFailed(f"the close ended with {process.returncode}")
        spent += time.monotonic() - begun
        off = connection.execute(
            "SELECT count(*) FROM organizations o WHERE EXISTS (SELECT FROM groups g WHERE g.organization_id ="
            " o.organization_id) AND 1 <> (SELECT count(*) FROM invoices i WHERE i.organization_id = o.organization_id"
            " AND i.kind = 'invoice' AND i.period_start = %s)",
            [month],
        ).fetchone()
    assert off is not None, "a count has a row"
    return Closed(count, spent, killed_after, int(off[0]))


def _reopen(world: World, connection: psycopg.Connection[Any], month: datetime, wanted: int) -> int:
    """Take the invoices of the last month back, which were filled in, and add organizations with one group each.
    Returns the number of organizations."""
    row = connection.execute("SELECT count(DISTINCT organization_id) FROM groups").fetchone()
    assert row is not None, "a count has a row"
    # First: bills are filled in for them, too.
    world.add_small(connection, max(0, wanted - int(row[0])), month)
    connection.execute("ALTER TABLE invoice_lines DISABLE TRIGGER USER")
    connection.execute("ALTER TABLE invoices DISABLE TRIGGER USER")
    of_month = "SELECT id FROM invoices WHERE period_start = %s"
    connection.execute(f"DELETE FROM invoice_lines WHERE invoice_id IN ({of_month})", [month])
    connection.execute("DELETE FROM invoices WHERE period_start = %s", [month])
    connection.execute("ALTER TABLE invoice_lines ENABLE TRIGGER USER")
    connection.execute("ALTER TABLE invoices ENABLE TRIGGER USER")
    connection.execute("TRUNCATE billed_quantities")
    connection.execute(
        "INSERT INTO billed_quantities SELECT organization_id, group_id, kind, sum(quantity) FROM invoice_lines"
        " WHERE kind <> 'sla_credit' AND correction_id IS NULL GROUP BY 1, 2, 3"
    )
    connection.execute("UPDATE organizations SET closed_until = %s", [month])
    connection.execute("ANALYZE")
    return max(wanted, int(row[0]))


def _start(world: World) -> subprocess.Popen[bytes]:
    command = [components.quorate_api(), "close-months"]
    environment = os.environ | world.stack.api_environment()
    with (world.folder / "close.log").open("ab") as log:
        return subprocess.Popen(command, env=environment, stdout=log, stderr=log)


def _until(connection: psycopg.Connection[Any], month: datetime, process: subprocess.Popen[bytes], count: int) -> int:
    """Until so many invoices of the month are there; their number."""
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        row = connection.execute(
            "SELECT count(*) FROM invoices WHERE period_start = %s AND kind = 'invoice'", [month]
        ).fetchone()
        assert row is not None, "a count has a row"
        if row[0] >= count:
            return int(row[0])
        if process.poll() is not None:
            raise MeasurementFailed(f"the close ended with {process.returncode} before it was killed")
        time.sleep(POLL_S)
    raise MeasurementFailed(f"no third of the organizations was closed within {TIMEOUT_S} s")
