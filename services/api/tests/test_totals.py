"""Totals equal what the windows sum up to, whenever hours are summed up and however windows arrive."""

import asyncio
import random
import time
import uuid
from dataclasses import replace

import psycopg
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.database.scope import EveryOrganization, Scope
from quorate_api.settled.repository import SettledRepository
from quorate_api.telemetry.windows import DAY_S, HOUR_S, WINDOW_S, Window, merged
from quorate_api.totals.repository import TotalsRepository
from quorate_api.usage.calculator import Count
from quorate_api.usage.repository import UsageRepository
from quorate_api.worker.rollup import pack_hours, roll_up
from support.customer import Customer
from support.usage import Usage


def generated(groups: list[str], rng: random.Random, end_s: int, count: int) -> list[Window]:
    """Windows of the last three days on three servers, some of them twice with greater counters, in any order."""
    found = []
    for _ in range(count):
        start_s = end_s - rng.randrange(3 * DAY_S)
        start_s -= start_s % WINDOW_S
        committed = rng.randrange(1 << 40)
        window = Window(
            rng.choice(groups), rng.randrange(3), "i", 1, start_s, "head", log_epoch=(0, 0, 7)[start_s // WINDOW_S % 3],
            committed_entries=committed, committed_bytes=64 * committed,
            read_entries=rng.randrange(1_000), read_bytes=rng.randrange(1 << 30), stored_bytes=rng.randrange(1 << 40),
        )  # fmt: skip
        found.append(window)
        if rng.random() < 0.3:
            more = rng.randrange(1_000)
            found.append(
                replace(window, read_entries=window.read_entries + more, stored_bytes=window.stored_bytes + more)
            )
    rng.shuffle(found)
    return found


@pytest.fixture
async def usage(alice: Customer, bob: Customer, worker_engine: AsyncEngine) -> Usage:
    groups = {(await alice.create_group(name))["id"]: alice for name in ("a", "b")}
    return Usage(worker_engine, {**groups, (await bob.create_group())["id"]: bob})


@pytest.mark.parametrize("seed", range(4))
async def test_totals_are_what_the_windows_sum_up_to(
    usage: Usage, alice: Customer, bob: Customer, owner: psycopg.Connection, seed: int
) -> None:
    rng = random.Random(seed)
    end_s = int(time.time()) // WINDOW_S * WINDOW_S
    windows = generated(list(usage.organizations), rng, end_s, 400)
    today_s = end_s // DAY_S * DAY_S
    while windows:
        batch, windows = windows[:60], windows[60:]
        await usage.ingest(batch)
        if rng.random() < 0.3:
            await usage.ingest(batch[:20])  # read again
        if rng.random() < 0.6:
            # Only some hours are over.
            await roll_up(usage.engine, end_s - rng.randrange(2 * DAY_S))
        for day_s in (None, today_s + DAY_S, today_s, today_s - DAY_S):
            for customer in (alice, bob):
                assert await usage.metered(customer, day_s) == usage.expected(customer, day_s), (seed, day_s)
        for customer in (alice, bob):
            from_s = today_s - rng.randrange(5) * DAY_S
            by_day = await usage.by_day(customer, from_s)
            for day_s in (None, *range(from_s, today_s + 2 * DAY_S, DAY_S)):
                assert by_day.before(day_s) == usage.expected(customer, day_s), (seed, from_s, day_s)
    assert await roll_up(usage.engine, end_s + 2 * HOUR_S) > 0
    assert await roll_up(usage.engine, end_s + 2 * HOUR_S) == 0
    assert owner.execute("SELECT count(*) FROM usage_dirty").fetchone() == (0,)
    for customer in (alice, bob):
        assert await usage.metered(customer, None) == usage.expected(customer, None)
    # Nothing is left to sum up: the totals do not need the windows any more.
    expected = usage.expected(alice, None)
    owner.execute("DELETE FROM usage_windows")
    assert await usage.metered(alice, None) == expected


async def test_windows_that_arrive_while_hours_are_summed_up_are_not_missed(
    usage: Usage, alice: Customer, owner: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "ROLL_HOURS_MAX", 3)
    monkeypatch.setattr(limits, "PACK_HOURS_MAX", 3)
    rng = random.Random(7)
    end_s = int(time.time()) // WINDOW_S * WINDOW_S
    windows = generated(list(usage.organizations), rng, end_s, 600)
    ingesting = True

    async def roll() -> None:
        while ingesting:
            await roll_up(usage.engine, end_s + 2 * HOUR_S)
            await asyncio.sleep(0)

    async def ingest(part: int) -> None:
        for start in range(part * 20, len(windows), 60):
            await usage.ingest(windows[start : start + 20])

    async def pack() -> None:
        while ingesting:
            await pack_hours(usage.engine, end_s + 2 * HOUR_S)
            await asyncio.sleep(0)

    rolling = [asyncio.create_task(task()) for task in (roll, roll, pack, pack)]
    await asyncio.gather(*(ingest(part) for part in range(3)))
    ingesting = False
    await asyncio.gather(*rolling)
    assert await usage.metered(alice, None) == usage.expected(alice, None)
    await roll_up(usage.engine, end_s + 2 * HOUR_S)
    assert await usage.metered(alice, None) == usage.expected(alice, None)
    assert await pack_hours(usage.engine, end_s + 4 * HOUR_S) > 0
    assert owner.execute("SELECT count(*) FROM usage_windows").fetchone() == (0,)
    for group_id, organization_id in usage.organizations.items():
        async with usage.engine.begin() as connection:
            found = await UsageRepository(Scope(connection, organization_id)).windows(
                uuid.UUID(group_id), end_s - 9 * DAY_S, end_s + DAY_S
            )
        assert merged(found) == merged(window for window in windows if window.group_id == group_id)


@pytest.mark.parametrize("packs", [False, True])
async def test_the_counters_of_minutes(usage: Usage, packs: bool) -> None:
    end_s = int(time.time()) // WINDOW_S * WINDOW_S
    windows = generated(list(usage.organizations), random.Random(5), end_s, 500)
    await usage.ingest(windows)
    if packs:
        await roll_up(usage.engine, end_s + 2 * HOUR_S)
        assert await pack_hours(usage.engine, end_s - DAY_S) > 0, "some hours, but for those of the last day"
    for group_id, organization_id in usage.organizations.items():
        from_s, to_s = end_s - 2 * DAY_S - 17 * WINDOW_S, end_s - 600
        async with usage.engine.begin() as connection:
            counts = await UsageRepository(Scope(connection, organization_id)).counts(uuid.UUID(group_id), from_s, to_s)
        expected: dict[tuple[int, int], Count] = {}
        for window in merged(windows):
            if window.group_id == group_id and from_s <= window.window_start_s < to_s:
                key = (window.window_start_s, window.log_epoch)
                had = expected.get(key, Count(*key, 0, 0, 0, 0))
                expected[key] = Count(
                    *key,
                    max(had.committed_entries, window.committed_entries),
                    max(had.committed_bytes, window.committed_bytes),
                    had.read_entries + window.read_entries,
                    had.read_bytes + window.read_bytes,
                )
        assert sorted(counts, key=lambda count: (count.start_s, count.log_epoch)) == [
            expected[key] for key in sorted(expected)
        ]


async def test_the_counters_before_a_time(usage: Usage, alice: Customer) -> None:
    end_s = int(time.time()) // WINDOW_S * WINDOW_S
    windows = generated(list(usage.organizations), random.Random(3), end_s, 200)
    await usage.ingest(windows)
    for group_id in usage.organizations:
        for at_s in (end_s // DAY_S * DAY_S, end_s // DAY_S * DAY_S - DAY_S):
            expected: dict[int, tuple[int, int]] = {}
            for window in windows:
                if window.group_id == group_id and window.window_start_s < at_s:
                    entries, size = expected.get(window.log_epoch, (0, 0))
                    greatest = (max(entries, window.committed_entries), max(size, window.committed_bytes))
                    expected[window.log_epoch] = greatest
            async with usage.engine.begin() as connection:
                scope = Scope(connection, usage.organizations[group_id])
                found = await TotalsRepository(scope).committed_before(uuid.UUID(group_id), at_s)
            assert found == expected


@pytest.mark.parametrize("seed", range(3))
async def test_totals_of_months_are_what_their_windows_sum_up_to(
    usage: Usage, alice: Customer, bob: Customer, owner: psycopg.Connection, seed: int
) -> None:
    """Days settle one after the other, with months that end between them, and windows go on to come."""
    rng = random.Random(seed)
    first_s = int(time.time()) // DAY_S * DAY_S - 70 * DAY_S
    settled_s = first_s
    for step in range(5):
        if step:
            settled_s += rng.randrange(9, 16) * DAY_S
            await roll_up(usage.engine, settled_s + 2 * HOUR_S)
            async with usage.engine.begin() as connection:
                settled = SettledRepository(EveryOrganization(connection, "a test"))
                await settled.forget()
                await settled.settle(settled_s)
        windows = generated(list(usage.organizations), rng, settled_s + 3 * DAY_S, 60)
        await usage.ingest(windows)
        if rng.random() < 0.5:
            await roll_up(usage.engine, settled_s + 2 * DAY_S)
        for customer in (alice, bob):
            assert await usage.metered(customer, None) == usage.expected(customer, None), (seed, step)
            for day_s in range(first_s - DAY_S, settled_s + 4 * DAY_S, 3 * DAY_S):
                expected = usage.expected(customer, day_s)
                assert await usage.metered(customer, day_s) == expected, (seed, step, day_s)
                now = await usage.before_and_now(customer, day_s)
                assert (now.before(day_s), now.before(None)) == (expected, usage.expected(customer, None))
                by_day = await usage.by_day(customer, day_s)
                for until_s in (day_s, day_s + 2 * DAY_S, settled_s + 3 * DAY_S):
                    assert by_day.before(until_s) == usage.expected(customer, until_s), (seed, step, day_s, until_s)
    months = owner.execute("SELECT count(*), max(until_s) FROM settled_times").fetchone()
    assert months is not None
    assert months[0] >= 2
    assert months[1] == settled_s
    # Totals need no day of a month before the last one.
    expected = usage.expected(alice, None)
    for table in ("usage_days", "usage_log_days"):
        owner.execute(f"DELETE FROM {table} WHERE day_s < %s", [settled_s])  # type: ignore[arg-type]
    assert await usage.metered(alice, None) == expected
