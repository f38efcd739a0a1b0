"""Usage reaches the bill exactly, despite every fault on the way."""

import asyncio
import json
import random
import time
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.asyncio import Redis
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.database import engine as database
from quorate_api.embedded import redis as embedded_redis
from quorate_api.tasks import end_task
from quorate_api.telemetry.records import WHOLE_ENTRY, read
from quorate_api.telemetry.windows import COUNTERS, Window, greatest, merged
from quorate_api.worker.ingest import GROUP, STORED_KEY, STREAM, Ingest
from quorate_api.worker.repository import WorkerRepository
from quorate_api.worker.steady import keep_running
from support.customer import Customer
from support.replica import ENTRY_BYTES, ReplicaLog, encoded


def hour_ago() -> int:
    return (int(time.time()) - 3_600) // 60 * 60


@pytest.fixture
async def log(alice: Customer) -> ReplicaLog:
    group = await alice.create_group()
    return ReplicaLog(group["id"], hour_ago())


@pytest.fixture
async def ingest(bus: Redis, worker_engine: AsyncEngine) -> Ingest:
    made = Ingest(bus, worker_engine, "w1")
    await made.prepare()
    return made


async def send(bus: Redis, reports: list[dict[str, Any]]) -> None:
    pipe = bus.pipeline(transaction=False)
    for report in reports:
        pipe.xadd(STREAM, encoded(report), maxlen=200_000, approximate=True)
    await pipe.execute()


async def drain(ingest: Ingest) -> None:
    while await ingest.step(10):
        pass


async def billed(customer: Customer) -> dict[str, int]:
    invoice = await customer.get("/v1/invoices/current")
    return {line["kind"]: line["quantity"] for line in invoice["lines"]}


def rows(owner: psycopg.Connection) -> list[Any]:
    return owner.execute(
        "SELECT * FROM usage_windows ORDER BY server_id, incarnation, epoch, window_start_s"
    ).fetchall()


async def test_what_was_committed_is_what_is_billed(
    ingest: Ingest, bus: Redis, log: ReplicaLog, alice: Customer
) -> None:
    log.run(400, seed=1)
    await send(bus, log.reports)
    await drain(ingest)
    assert (await billed(alice))["appends"] == log.committed
    usage = await alice.get(f"/v1/groups/{log.group_id}/usage")
    assert usage["committed_entries"] == log.committed == sum(m["committed_entries"] for m in usage["minutes"])
    assert usage["committed_bytes"] == log.committed * ENTRY_BYTES
    pending = await bus.xpending(STREAM, GROUP)
    assert pending["pending"] == 0


async def test_what_lost_logs_committed_is_billed_whenever_it_arrives(
    ingest: Ingest, bus: Redis, log: ReplicaLog, alice: Customer
) -> None:
    """At a reset, windows of the lost log are still in Redis, or on servers that are away. They arrive after windows of
    the next log, with greater counters."""
    log.run(150, seed=11)
    early = len(log.reports) * 2 // 3
    log.lose_and_reset()
    late = len(log.reports)
    log.run(70, seed=12)
    log.lose_and_reset()
    log.run(5, seed=13)
    await send(bus, log.reports[:early])
    await drain(ingest)
    await send(bus, log.reports[late:])
    await drain(ingest)
    counted = max(report["records"][0]["committed_entries"] for report in log.reports[:early])
    assert counted > log.committed > 0, "what the newest log has is far below what the first had"
    first = log.reports[late - 1]["records"][0]["committed_entries"]
    assert (await billed(alice))["appends"] == log.ever - (first - counted), "the next logs' entries are not hidden"
    for again in range(2):
        await send(bus, log.reports[early:late])
        await drain(ingest)
        assert (await billed(alice))["appends"] == log.ever, f"late windows count in full, once ({again})"
    usage = await alice.get(f"/v1/groups/{log.group_id}/usage")
    assert usage["committed_entries"] == log.ever == sum(m["committed_entries"] for m in usage["minutes"])
    assert usage["committed_bytes"] == log.ever * ENTRY_BYTES


async def test_replayed_reordered_and_duplicated(
    ingest: Ingest, bus: Redis, log: ReplicaLog, alice: Customer, owner: psycopg.Connection
) -> None:
    log.run(300, seed=2)
    await send(bus, log.reports)
    await drain(ingest)
    once, invoice = rows(owner), await billed(alice)
    shuffled = log.reports * 2
    random.Random(3).shuffle(shuffled)
    await send(bus, shuffled)
    await drain(ingest)
    assert rows(owner) == once
    usage_only = {kind: quantity for kind, quantity in (await billed(alice)).items() if kind != "reservation"}
    assert usage_only == {kind: quantity for kind, quantity in invoice.items() if kind != "reservation"}


@pytest.mark.parametrize("batch", [1, 7, 500])
async def test_shuffled_from_the_start(
    ingest: Ingest,
    bus: Redis,
    log: ReplicaLog,
    alice: Customer,
    owner: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    batch: int,
) -> None:
    """PostgreSQL alone merges batches of one; large batches are merged before. The result is the same."""
    monkeypatch.setattr("quorate_api.limits.INGEST_BATCH_ENTRIES", batch)
    log.run(200, seed=4)
    shuffled = list(log.reports)
    random.Random(5).shuffle(shuffled)
    await send(bus, shuffled)
    await drain(ingest)
    expected = merged(found.window for report in log.reports for found in read("1-0", json.dumps(report))[0])
    found = owner.execute(
        f"SELECT server_id, incarnation, epoch, window_start_s, role, log_epoch, {', '.join(COUNTERS)}, latency_us"
        " FROM usage_windows"
    ).fetchall()
    as_windows = [
        Window(log.group_id, *row[:-1], latency_us={int(bucket): count for bucket, count in row[-1].items()})
        for row in found
    ]
    assert sorted(as_windows, key=lambda window: window.key) == expected
    assert (await billed(alice))["appends"] == log.committed


async def test_a_crash_between_commit_and_acknowledgement(
    ingest: Ingest, bus: Redis, worker_engine: AsyncEngine, log: ReplicaLog, alice: Customer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    log.run(60, seed=6)
    await send(bus, log.reports)

    async def crash(*_: object) -> None:
        raise ConnectionError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(bus, "xack", crash)
        with pytest.raises(ConnectionError):
            await ingest.step(10)
    assert (await bus.xpending(STREAM, GROUP))["pending"] > 0
    restarted = Ingest(bus, worker_engine, "w1")
    await drain(restarted)
    assert (await bus.xpending(STREAM, GROUP))["pending"] == 0
    assert (await billed(alice))["appends"] == log.committed


async def test_a_crash_before_the_commit(
    ingest: Ingest, bus: Redis, worker_engine: AsyncEngine, log: ReplicaLog, alice: Customer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    log.run(60, seed=7)
    await send(bus, log.reports)

    async def crash(*_: object) -> None:
        raise ConnectionError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(Ingest, "store", crash)
        with pytest.raises(ConnectionError):
            await ingest.step(10)
    assert "appends" not in await billed(alice)
    await drain(Ingest(bus, worker_engine, "w1"))
    assert (await billed(alice))["appends"] == log.committed


async def test_a_dead_consumers_entries_are_taken_over(
    bus: Redis, ingest: Ingest, worker_engine: AsyncEngine, log: ReplicaLog, alice: Customer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    log.run(30, seed=8)
    await send(bus, log.reports)
    await bus.xreadgroup(GROUP, "dead", {STREAM: ">"}, count=40)
    await asyncio.sleep(0.05)
    monkeypatch.setattr("quorate_api.limits.INGEST_CLAIM_IDLE_MS", 20)
    await drain(ingest)
    assert (await bus.xpending(STREAM, GROUP))["pending"] == 0
    assert (await billed(alice))["appends"] == log.committed


async def test_two_workers_at_once(
    bus: Redis, ingest: Ingest, worker_engine: AsyncEngine, log: ReplicaLog, alice: Customer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("quorate_api.limits.INGEST_BATCH_ENTRIES", 20)
    log.run(300, seed=9)
    await send(bus, log.reports)
    await asyncio.gather(*(drain(Ingest(bus, worker_engine, f"w{number}")) for number in range(3)))
    assert (await billed(alice))["appends"] == log.committed


async def test_windows_lost_on_the_way_lose_no_usage(
    ingest: Ingest, bus: Redis, log: ReplicaLog, alice: Customer
) -> None:
    """Only the last report arrives. Its counters come from the log, so the bill is the same."""
    log.run(600, seed=10)
    await send(bus, log.reports[-1:])
    await drain(ingest)
    assert (await billed(alice))["appends"] == log.committed


def set_aside(owner: psycopg.Connection) -> list[tuple[int, str]]:
    return owner.execute("SELECT position, reason FROM rejected_usage ORDER BY entry_id, position").fetchall()


async def test_entries_that_do_not_follow_the_contract(
    ingest: Ingest, bus: Redis, log: ReplicaLog, alice: Customer, owner: psycopg.Connection
) -> None:
    log.run(10, seed=11)
    good = log.reports[-1]
    record = good["records"][0]
    bad: list[tuple[int, str, dict[str, Any]]] = [
        (WHOLE_ENTRY, "Invalid JSON", {"d": "not json"}),
        (WHOLE_ENTRY, "no field `d`", {"x": "y"}),
        (WHOLE_ENTRY, "Invalid JSON", {"d": "[" * 5_000}),
        (WHOLE_ENTRY, "Invalid JSON", {"d": b"\xff\x00"}),
        (WHOLE_ENTRY, "v: ", encoded(good | {"v": 2})),
        (WHOLE_ENTRY, "incarnation: ", encoded(good | {"incarnation": "a\x00b"})),
        (0, "committed_entries: ", encoded(good | {"records": [record | {"committed_entries": -1}]})),
        (0, "committed_entries: ", encoded(good | {"records": [record | {"committed_entries": 1 << 63}]})),
        (0, "window_start_s: ", encoded(good | {"records": [record | {"window_start_s": 1}]})),
        (0, "group: ", encoded(good | {"records": [record | {"group": "x"}]})),
        (0, "latency_us", encoded(good | {"records": [record | {"latency_us": {"999999": 1}}]})),
    ]
    for _, _, fields in bad:
        await bus.xadd(STREAM, fields)
    stranger = good | {"records": [record | {"group": str(uuid.uuid4())}]}
    await send(bus, [stranger, good])
    await drain(ingest)
    found = set_aside(owner)
    assert len(found) == len(bad)
    for (position, reason), (expected, what, _) in zip(found, bad, strict=True):
        assert (position, what in reason) == (expected, True), (reason, what)
    assert (await bus.xpending(STREAM, GROUP))["pending"] == 0
    assert (await billed(alice))["appends"] == log.committed


async def test_a_bad_record_is_set_aside_alone(
    ingest: Ingest, bus: Redis, log: ReplicaLog, alice: Customer, owner: psycopg.Connection
) -> None:
    """It is in one entry with sound ones, and read again after a crash."""
    log.run(30, seed=21)
    good = log.reports[-1]
    record = good["records"][0]
    later = int(time.time()) // 60 * 60 + 600
    impossible = {
        "the server's clock is wrong": record | {"window_start_s": later},
        "committed entries runs backwards": record | {"first_committed_entries": log.committed + 1},
        "committed bytes runs backwards": record | {"first_committed_bytes": 1 << 50},
        "than any group may retain": record | {"stored_bytes": 1 << 57},
        "than any server can send": record | {"read_entries": 1 << 57},
        "than any group can commit": record | {"committed_entries": 1 << 57, "committed_bytes": 1 << 57},
        "refused_entries: ": record | {"refused_entries": -1},
    }
    mixed = good | {"records": [*impossible.values(), record]}
    await send(bus, [mixed])
    for _ in range(2):
        await ingest.store([(b"1-1", {b"d": json.dumps(mixed).encode()})])
    await drain(ingest)
    found = set_aside(owner)
    assert len(found) == 2 * len(impossible), "once for each entry, however often it is read"
    for position, reason in found:
        assert list(impossible)[position] in reason
    assert (await billed(alice))["appends"] == log.committed


async def test_a_record_that_postgresql_refuses_does_not_stop_the_others(
    ingest: Ingest, bus: Redis, log: ReplicaLog, alice: Customer, owner: psycopg.Connection
) -> None:
    """A fault of ours: the contract lets it through."""
    log.run(300, seed=22)
    starts = {record["window_start_s"] for report in log.reports for record in report["records"]}
    refused = sorted(starts)[len(starts) // 2]
    owner.execute(f"ALTER TABLE usage_windows ADD CHECK (window_start_s <> {refused})")
    await send(bus, log.reports)
    await drain(ingest)
    assert (await bus.xpending(STREAM, GROUP))["pending"] == 0
    assert {reason.split('"')[0] for _, reason in set_aside(owner)} == {"new row for relation "}
    kept = {row[0] for row in owner.execute("SELECT window_start_s FROM usage_windows").fetchall()}
    assert kept == starts - {refused}
    assert (await billed(alice))["appends"] == log.committed, "later records count it"


async def test_a_batch_of_many_groups_is_one_statement_each(
    ingest: Ingest, alice: Customer, owner: psycopg.Connection, worker_engine: AsyncEngine
) -> None:
    """More values than PostgreSQL takes parameters."""
    group = await alice.create_group()
    count = 12_000
    owner.execute(
        "INSERT INTO groups SELECT gen_random_uuid(), organization_id, project_id, name || n, sla, demand, price,"
        " hourly_micros, rate_per_s, created_at, NULL, status, epoch, replicas, learners, observed_at, active_at, NULL"
        " FROM groups, generate_series(1, %s) AS n",
        (count,),
    )
    ids = [str(row[0]) for row in owner.execute("SELECT id FROM groups").fetchall()]
    start_s = hour_ago()
    record = ReplicaLog(group["id"], start_s).run(1, seed=1).reports[0]["records"][0]
    half = len(ids) // 2
    entries = [
        {"v": 1, "server_id": 1, "incarnation": "i", "at_ms": 1, "records": [record | {"group": each} for each in part]}
        for part in (ids[:half], ids[half:])
    ]
    await ingest.store([(f"1-{n}".encode(), {b"d": json.dumps(entry).encode()}) for n, entry in enumerate(entries)])
    for table in ("usage_windows", "usage_log_days", "usage_dirty"):
        assert owner.execute(f"SELECT count(*) FROM {table}").fetchone() == (count + 1,)
    # The same of a server whose clock is wrong.
    late = record | {"window_start_s": start_s + 36_000}
    wrong = entries[0] | {"records": [late | {"group": each} for each in ids]}
    await ingest.store([(b"1-9", {b"d": json.dumps(wrong).encode()})])
    assert owner.execute("SELECT count(*) FROM rejected_usage").fetchone() == (count + 1,)
    now = datetime.now(UTC)
    async with worker_engine.begin() as connection:
        await WorkerRepository(connection).sweep(now, now - timedelta(days=1))
    assert owner.execute("SELECT count(*) FROM rejected_usage").fetchone() == (10_000,), "of one time, too"


async def test_a_worker_whose_clock_is_late_takes_no_server_for_wrong(
    ingest: Ingest, bus: Redis, log: ReplicaLog, alice: Customer, owner: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    log.run(60, seed=31)
    await send(bus, log.reports)
    now = time.time
    monkeypatch.setattr("quorate_api.worker.ingest.time.time", lambda: now() - 86_400)
    await drain(ingest)
    assert set_aside(owner) == []


async def test_rejected_usage_is_bounded(
    ingest: Ingest, worker_engine: AsyncEngine, owner: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quorate_api.limits.INGEST_REJECTED_ROWS_MAX", 5)
    for number in range(12):
        await ingest.store([(f"{number:02}-0".encode(), {b"d": b"x" * (1 << 20)})])
    now = datetime.now(UTC)
    async with worker_engine.begin() as connection:
        await WorkerRepository(connection).sweep(now, now - timedelta(days=1))
    kept = owner.execute("SELECT entry_id, length(data) FROM rejected_usage ORDER BY entry_id").fetchall()
    assert kept == [(f"{number:02}-0", 64 << 10) for number in range(7, 12)]


async def test_redis_away_and_back_empty(
    tmp_path: Path, worker_engine: AsyncEngine, log: ReplicaLog, alice: Customer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redis dies and comes back without its data. Servers report on, and the bill is complete."""
    monkeypatch.setattr("quorate_api.limits.RETRY_DELAY_S_MAX", 0.2)
    url = embedded_redis.start(tmp_path / "redis")
    client: Redis = Redis.from_url(url, socket_timeout=2)
    task = asyncio.create_task(keep_running("ingest", Ingest(client, worker_engine, "w1").run))
    try:
        log.run(60, seed=12)
        await send(client, log.reports)
        await until(alice, log.committed)
        embedded_redis.stop(tmp_path / "redis")
        (tmp_path / "redis" / "appendonly.aof").unlink()
        log.run(60, seed=13)
        await asyncio.sleep(0.5)
        embedded_redis.start(tmp_path / "redis")
        await client.connection_pool.disconnect(inuse_connections=False)  # those that were idle meanwhile
        await send(client, log.reports[-1:])
        await until(alice, log.committed)
    finally:
        await end_task(task)
        await client.aclose()
        embedded_redis.stop(tmp_path / "redis")


async def test_postgresql_away(
    bus: Redis, owner: psycopg.Connection, owner_url: str, log: ReplicaLog, alice: Customer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Connections are closed and refused for a while. No entry is acknowledged meanwhile, and none is lost."""
    monkeypatch.setattr("quorate_api.limits.RETRY_DELAY_S_MAX", 0.2)
    engine = database.create(owner_url, database.WORKER_ROLE)
    task = asyncio.create_task(keep_running("ingest", Ingest(bus, engine, "w1").run))
    try:
        log.run(30, seed=14)
        await send(bus, log.reports)
        await until(alice, log.committed)
        owner.execute("ALTER TABLE usage_windows RENAME TO hidden")
        # Other databases of the cluster are those of tests that run beside this one.
        owner.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'quorate_worker' AND datname = current_database()"
        )
        before = len(log.reports)
        log.run(30, seed=15)
        await send(bus, log.reports[before:])
        await asyncio.sleep(0.5)
        assert (await bus.xpending(STREAM, GROUP))["pending"] > 0
        owner.execute("ALTER TABLE hidden RENAME TO usage_windows")
        await until(alice, log.committed)
    finally:
        await end_task(task)
        await engine.dispose()


async def until(customer: Customer, committed: int, seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while (await billed(customer)).get("appends") != committed:
        assert time.monotonic() < deadline, (await billed(customer), committed)
        await asyncio.sleep(0.05)


COUNTS = st.integers(0, 3)


@st.composite
def reports_of_one_window(draw: st.DrawFn) -> list[Window]:
    base = Window("g", 1, "a", 1, 60, draw(st.sampled_from(["head", "learner", "tail"])))
    return [
        replace(
            base,
            role=draw(st.sampled_from([base.role, "tail"])),
            **{name: draw(COUNTS) for name in COUNTERS},
            latency_us=draw(st.dictionaries(st.integers(0, 3), COUNTS)),
        )
        for _ in range(draw(st.integers(1, 4)))
    ]


@given(reports_of_one_window(), st.randoms(use_true_random=False))
def test_merging_is_a_maximum(reports: list[Window], rng: random.Random) -> None:
    """Merging is commutative, associative and idempotent. Each counter is the greatest one."""
    expected = merged(reports)[0]
    shuffled = reports * 2
    rng.shuffle(shuffled)
    again = merged(shuffled)[0]
    assert {name: getattr(again, name) for name in COUNTERS} == {
        name: max(getattr(report, name) for report in reports) for name in COUNTERS
    }
    assert [getattr(again, name) for name in COUNTERS] == [getattr(expected, name) for name in COUNTERS]
    assert again.latency_us == expected.latency_us
    assert greatest(again, again) == again


async def test_an_entry_that_was_trimmed_before_it_was_read_again_is_no_reject(
    bus: Redis, worker_engine: AsyncEngine, log: ReplicaLog, owner: psycopg.Connection
) -> None:
    log.run(20, seed=3)
    first = Ingest(bus, worker_engine, "w1")
    await first.prepare()
    await send(bus, log.reports)
    await first._read(">", 10)
    ids = [entry_id for entry_id, _ in await bus.xrange(STREAM)]
    await bus.xtrim(STREAM, minid=ids[-1], approximate=False)
    await drain(Ingest(bus, worker_engine, "w1"))
    assert owner.execute("SELECT count(*) FROM rejected_usage").fetchone() == (0,)


async def test_servers_are_told_what_is_stored(
    ingest: Ingest, bus: Redis, worker_engine: AsyncEngine, log: ReplicaLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "INGEST_TELL_S", 0.0)
    monkeypatch.setattr(limits, "INGEST_BATCH_ENTRIES", 5)
    log.run(60, seed=3)
    await send(bus, log.reports)
    ids = [entry_id for entry_id, _ in await bus.xrange(STREAM)]
    await ingest.step(10)
    assert await bus.get(STORED_KEY) == ids[4], "the last one is kept: trimming spares the one that is named"
    # Another worker has read further, and stored nothing of it yet.
    other = Ingest(bus, worker_engine, "w2")
    await other._read(">", 10)
    await ingest.step(10)
    assert await bus.get(STORED_KEY) == ids[5], "entries before it are stored"
    await other.step(10)
    assert await bus.get(STORED_KEY) == ids[14]
    await drain(ingest)
    assert await bus.get(STORED_KEY) == ids[-1]
    await bus.xtrim(STREAM, minid=ids[-1], approximate=False)
    assert await ingest.backlog() == 0
