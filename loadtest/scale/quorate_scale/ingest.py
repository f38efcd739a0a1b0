"""How many groups one core ingests at a record a minute each: the worker's processor time, and PostgreSQL's for it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from redis import Redis

from quorate_harness.fleet import MeasurementFailed
from quorate_harness.processor import tree_s
from quorate_scale.world import WINDOW_S, World

MINUTES = 5  # for each group
RECORDS_PER_ENTRY = 256  # as servers send
TIMEOUT_S = 1_200
POLL_S = 0.5
STREAM, GROUP = "quorate:usage", "quorate-worker"


@dataclass(frozen=True)
class Ingested:
    records: int
    worker_cpu_s: float
    postgres_cpu_s: float
    elapsed_s: float

    @property
    def groups_per_core(self) -> float:
        """Groups whose records of a minute take a minute of one core, in worker and PostgreSQL together."""
        return self.records * WINDOW_S / (self.worker_cpu_s + self.postgres_cpu_s)


def measure(world: World) -> Ingested:
    """A worker finds five minutes of every group in the stream. All other work of the worker is in its time."""
    with world.connect() as connection:
        groups = [
            str(row[0]) for row in connection.execute("SELECT id FROM groups WHERE deleted_at IS NULL").fetchall()
        ]
    server = f"of-{len(groups)}"  # another one for each size
    with Redis.from_url(world.stack.addresses["redis"]) as bus:
        bus.xtrim(STREAM, maxlen=0)
        records = 0
        for entry, count in _entries(groups, server):
            bus.xadd(STREAM, {"d": entry})
            records += count
        postgres_before = tree_s(world.postgres_pid)
        begun = time.monotonic()
        world.stack.restart("worker")
        try:
            _wait(bus)
            elapsed_s = time.monotonic() - begun
            worker_s = tree_s(world.stack.processes()["worker"].identity.pid)
        finally:
            world.stack.crash("worker")
    postgres_s = tree_s(world.postgres_pid) - postgres_before
    _check(world, server, records)
    return Ingested(records, worker_s, postgres_s, elapsed_s)


def _entries(groups: list[str], incarnation: str) -> Iterator[tuple[str, int]]:
    """Entries of the stream, as one server sends them: half of the groups are active, and half are idle."""
    now_s = int(datetime.now(UTC).timestamp()) // WINDOW_S * WINDOW_S
    for minute in range(MINUTES):
        start_s = now_s - (MINUTES - minute) * WINDOW_S
        records = (_record(group, number, start_s) for number, group in enumerate(groups))
        while part := list(islice(records, RECORDS_PER_ENTRY)):
            envelope = {"v": 1, "server_id": 1, "incarnation": incarnation, "at_ms": start_s * 1_000, "records": part}
            yield json.dumps(envelope), len(part)


def _record(group: str, number: int, start_s: int) -> dict[str, Any]:
    entries = 600 if number % 2 else 0
    committed = 1_000_000_000 + entries * (start_s // WINDOW_S % 1_440)
    record: dict[str, Any] = {
        "group": group, "epoch": 1, "role": "sole", "window_start_s": start_s, "window_s": WINDOW_S,
        "committed_entries": committed + entries, "committed_bytes": 64 * (committed + entries),
        "first_committed_entries": committed, "first_committed_bytes": 64 * committed,
        "offered_entries": entries, "within_sla_entries": entries, "active_ms": 60_000, "paused_ms": 0,
        "from_ms": start_s * 1_000, "to_ms": start_s * 1_000 + 60_000, "stored_bytes": 100_000_000,
    }  # fmt: skip
    if entries:
        record["latency_us"] = {str(bucket): 50 for bucket in range(250, 262)}
    return record


def _wait(bus: Redis) -> None:
    """Until every entry is acknowledged."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        (group,) = [each for each in bus.xinfo_groups(STREAM) if each["name"] == GROUP.encode()]
        last = bus.xinfo_stream(STREAM)["last-generated-id"]  # a lag is not known of a stream that was trimmed
        if group["pending"] == 0 and group["last-delivered-id"] == last:
            return
        if time.monotonic() > deadline:
            raise MeasurementFailed(f"the worker had not ingested everything after {TIMEOUT_S} s")
        time.sleep(POLL_S)


def _check(world: World, incarnation: str, records: int) -> None:
    with world.connect() as connection:
        row = connection.execute("SELECT count(*) FROM usage_windows WHERE incarnation = %s", [incarnation]).fetchone()
        rejected = connection.execute("SELECT reason FROM rejected_usage LIMIT 1").fetchone()
    assert row is not None, "a count has a row"
    if rejected is not None:
        raise MeasurementFailed(f"a record was rejected: {rejected[0]}")
    if row[0] != records:
        raise MeasurementFailed(f"{row[0]} windows are stored of {records} records")
