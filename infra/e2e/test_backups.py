"""The restore drill: PostgreSQL's and the coordinator's disks are lost under load, and nothing else is.

`make drill` runs it. It holds `restore_…_lost` in `build/figures/drill.jsonl`.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg

from quorate import Client, connect_group
from quorate_harness.customer import Customer
from quorate_harness.figures import FOLDER, Figure, keep
from quorate_local import Stack, StackOptions, components

PERSISTENT = {"durability": "persistent", "replication_degree": 3, "request_size_bytes": 64, "rate_per_s": 5_000}
IN_MEMORY = PERSISTENT | {"durability": "in_memory"}
SOON_S = 60.0
BEFORE, DURING, AFTER = 400, 200, 100
PAGE_ENTRIES = 500
COMMAND = "make drill"


@contextmanager
def running(command: list[str], env: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that keeps a backup, once it says that it is ready; killed at the end, as the machine is lost."""
    with log.open("ab") as out:
        process = subprocess.Popen(command, env={**os.environ, **env}, stdout=out, stderr=out, start_new_session=True)
        try:
            wait_for(lambda: "backup ready" in log.read_text(), f"{command[0]} to be ready: {log.read_text()}")
            yield process
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # with its own child
            process.wait(10)


def wait_for(is_so: Any, what: str) -> None:
    deadline = time.monotonic() + SOON_S
    while not is_so():
        assert time.monotonic() < deadline, f"waited {SOON_S:.0f} s for {what}"
        time.sleep(0.05)


def run(command: list[str], env: dict[str, str] | None = None, ends: int = 0) -> str:
    done = subprocess.run(
        command, env={**os.environ, **(env or {})}, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == ends, (command, done.returncode, done.stdout, done.stderr)
    return done.stdout


class Drill:
    """`acked`: the texts of acknowledged entries, by group, in the order of their offsets."""

    def __init__(self, stack: Stack, customer: Customer) -> None:
        self.stack = stack
        self.customer = customer
        self.acked: dict[str, dict[int, bytes]] = {}
        self.began = datetime.now(UTC)

    def admit(self, name: str, sla: dict[str, Any]) -> str:
        group_id = str(self.customer.create_group(name, sla)["id"])
        self.acked[group_id] = {}
        return group_id

    async def append(self, log: Client, group_id: str, count: int, word: str) -> None:
        texts = [f"{word} {number}".encode() for number in range(count)]
        for text, offset in zip(texts, await asyncio.gather(*(log.append(text) for text in texts)), strict=True):
            self.acked[group_id][offset] = text

    async def lost(self, group_id: str) -> int:
        """Acknowledged entries that are not at their offsets."""
        found: dict[int, bytes] = {}
        async with await connect_group(self.customer.api_url, self.customer.api_key, group_id) as log:
            offset = 0
            while offset < len(self.acked[group_id]):
                page = (await log.read(offset, max_entries=PAGE_ENTRIES)).entries
                assert page, f"nothing at offset {offset}"
                found |= {entry.offset: entry.data for entry in page}
                offset = page[-1].offset + 1
        return sum(found.get(offset) != text for offset, text in self.acked[group_id].items())


def test_nothing_acked_billed_or_admitted_is_lost(own_state: Path) -> None:
    options = StackOptions.from_environment(state=own_state, servers=3)
    with Stack(options) as stack, Customer(stack.api_url, "e2e-drill") as customer:
        drill = Drill(stack, customer)
        asyncio.run(_drill(drill, own_state))
        assert stack.dead() == []


async def _drill(drill: Drill, folder: Path) -> None:
    stack, customer = drill.stack, drill.customer
    database, env = stack.addresses["postgres"], stack.api_environment()
    coordinator = str(components.binary(stack.options, "quorate-coordinator"))
    own, copy, backups = stack.layout.coordinator, folder / "coordinator-copy", folder / "backups"
    api = components.quorate_api()
    keeps_log = [coordinator, "backup", "--data-dir", str(own), "--to", str(copy)]
    orders, cache = drill.admit("orders", PERSISTENT), drill.admit("cache", IN_MEMORY)
    async with (
        await connect_group(customer.api_url, customer.api_key, orders) as of_orders,
        await connect_group(customer.api_url, customer.api_key, cache) as of_cache,
    ):
        with (
            running([api, "backup", "--dir", str(backups)], env, folder / "backup.log"),
            running(keeps_log, {}, folder / "coordinator-backup.log"),
        ):
            wait_for(lambda: list((backups / "base").glob("*Z")), "the first base backup")
            _commit_with_the_backup(database)
            await drill.append(of_orders, orders, BEFORE, "before")
            await drill.append(of_cache, cache, BEFORE, "before")
            last = drill.admit("admitted last", PERSISTENT)
            invoices = _close_a_month(drill, api, env)
            _lose_disks(stack)
        lost_at = time.monotonic()
        await drill.append(of_orders, orders, DURING, "during the outage")
        run([api, "restore", "--dir", str(backups), "--to", str(stack.layout.postgres / "cluster")])
        told = run([coordinator, "restore", "--from", str(copy), "--data-dir", str(own)])
        assert told.startswith("3 servers and 3 groups")
        run([coordinator, "restore", "--from", str(copy), "--data-dir", str(own)], ends=2)  # overwrites nothing
        for name in ("postgres", "coordinator", "api", *stack.options.worker_names()):
            stack.restart(name)
        took_s = time.monotonic() - lost_at
        await drill.append(of_orders, orders, AFTER, "after")
        await drill.append(of_cache, cache, AFTER, "after")
    async with await connect_group(customer.api_url, customer.api_key, last) as of_last:
        await drill.append(of_last, last, AFTER, "after")
    _judge(drill, invoices, {group_id: await drill.lost(group_id) for group_id in drill.acked}, took_s)
    wait_for(lambda: '"fail"' not in _doctor(api, env, backups, ends=None), "the doctor to find nothing to mend")


def _commit_with_the_backup(database: str) -> None:
    """From here on a commit is one once the backup has it, too."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET synchronous_standby_names = 'quorate_backup'")
        connection.execute("SELECT pg_reload_conf()")
        synchronous = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
        wait_for(lambda: connection.execute(synchronous).fetchone() == (1,), "the backup to be synchronous")


def _close_a_month(drill: Drill, api: str, env: dict[str, str]) -> list[Any]:
    """Issue the invoice of the present month early; the numbers of all documents."""
    month_end = (drill.began.replace(day=1) + timedelta(days=32)).replace(day=1, hour=0, minute=0, second=0)
    run([api, "close-months", "--as-of", month_end.isoformat()], env)
    found = list(drill.customer.get("/v1/invoices")["items"])
    assert found, "an invoice was issued"
    return found


def _lose_disks(stack: Stack) -> None:
    """All at once: the control plane's processes, PostgreSQL's disk, and the coordinator's."""
    for name in ("api", *stack.options.worker_names(), "coordinator", "postgres"):
        stack.crash(name)
    shutil.rmtree(stack.layout.postgres / "cluster")
    shutil.rmtree(stack.layout.coordinator)


def _judge(drill: Drill, invoices: list[Any], lost: dict[str, int], took_s: float) -> None:
    customer = drill.customer
    groups = {each["id"] for each in customer.get(f"/v1/projects/{customer.project_id}/groups")["items"]}
    present = {each["id"]: each for each in customer.get("/v1/invoices")["items"]}
    billed = {group_id: customer.usage(group_id, drill.began)["committed_entries"] for group_id in drill.acked}
    deadline = time.monotonic() + 2 * SOON_S
    while any(billed[group_id] != len(drill.acked[group_id]) for group_id in billed) and time.monotonic() < deadline:
        time.sleep(1)
        billed = {group_id: customer.usage(group_id, drill.began)["committed_entries"] for group_id in drill.acked}
    unbilled = sum(abs(len(drill.acked[group_id]) - entries) for group_id, entries in billed.items())
    changed = sum(present.get(each["id"]) != each for each in invoices)
    figures = [
        Figure(
            "restore_acked_lost", sum(lost.values()), "entries", 0, note=f"of {sum(map(len, drill.acked.values()))}"
        ),
        Figure("restore_admitted_lost", len(drill.acked.keys() - groups), "groups", 0, note=f"of {len(drill.acked)}"),
        Figure("restore_billed_lost", unbilled + changed, "entries and invoices", 0, note=f"{len(invoices)} invoices"),
        Figure("restore_s", round(took_s, 1), "s", note="of a small database, without the time to find a machine"),
    ]
    keep(figures, COMMAND, FOLDER / "drill.jsonl")
    assert all(figure.met is not False for figure in figures), (figures, lost, billed)


def _doctor(api: str, env: dict[str, str], backups: Path, ends: int | None) -> str:
    command = [api, "doctor", "--json", "--backups", str(backups)]
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, timeout=60, check=False)
    assert ends is None or done.returncode == ends, done.stdout + done.stderr
    assert json.loads(done.stdout), done.stderr
    return done.stdout
