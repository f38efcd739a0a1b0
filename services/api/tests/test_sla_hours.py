"""Reports from judged hours equal reports from all windows, however windows arrive and whenever hours are judged."""

import asyncio
import gzip
import json
import random
import time
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.database.scope import EveryOrganization, Scope
from quorate_api.groups.repository import GroupRepository
from quorate_api.outside.verdict import Unreachable
from quorate_api.sla import calculator, service
from quorate_api.sla.calculator import Report
from quorate_api.sla.hours import judge_hours
from quorate_api.telemetry.histogram import bucket_of
from quorate_api.telemetry.windows import DAY_S, HOUR_S, WINDOW_S, Window, merged
from quorate_api.usage.repository import UsageRepository
from quorate_api.worker.retention import settle_days
from quorate_api.worker.rollup import pack_hours, roll_up
from support.customer import Customer
from support.usage import Usage

START_S = 20_000 * DAY_S
HOURS = 7  # with windows
START, END = (datetime.fromtimestamp(START_S + days * DAY_S, UTC) for days in (0, 1))
LATER = END + timedelta(hours=2)


@pytest.fixture
async def group_id(alice: Customer, owner: psycopg.Connection) -> str:
    """A group that is active since a moment in the first hour."""
    group_id: str = (await alice.create_group())["id"]
    owner.execute("UPDATE groups SET active_at = to_timestamp(%s)", [START_S + 1_234.5])
    return group_id


@pytest.fixture
def usage(worker_engine: AsyncEngine, alice: Customer, group_id: str) -> Usage:
    return Usage(worker_engine, {group_id: alice})


async def measured(usage: Usage, group_id: str, now: datetime) -> Report:
    async with usage.engine.begin() as connection:
        scope = Scope(connection, usage.organizations[group_id])
        group = await GroupRepository(scope).get(uuid.UUID(group_id))
        assert group is not None
        return await service.measure(scope, group, START, END, now)


async def from_windows(usage: Usage, group_id: str, now: datetime, outside: Unreachable | None = None) -> Report:
    async with usage.engine.begin() as connection:
        group = await GroupRepository(Scope(connection, usage.organizations[group_id])).get(uuid.UUID(group_id))
    assert group is not None
    return service.judged(merged(usage.windows), outside or {}, group, START, END, now)


def history(group_id: str, rng: random.Random) -> list[Window]:
    """Heads with gaps of all lengths, in some of which the log grew or the head was another one."""
    found = []
    minute, committed, incarnation, epoch = 0, 0, "a", 1
    while minute < HOURS * 60:
        first, committed = committed, committed + rng.choice((0, 0, 7))
        start_s = START_S + minute * WINDOW_S
        active_ms = rng.choice((60_000, 60_000, 60_000, 59_000, 31_000))
        window = Window(
            group_id, epoch % 3, incarnation, epoch, start_s, rng.choice(("head", "head", "sole")),
            committed_entries=committed, first_committed_entries=first,
            active_ms=active_ms, paused_ms=0, from_ms=start_s * 1_000, to_ms=start_s * 1_000 + 60_000,
            throttled_within_sla_entries=rng.choice((0,) * 20 + (3,)), within_sla_entries=rng.choice((200, 400)),
            latency_us={bucket_of(rng.choice((300, 400, 80_000))): rng.randrange(1, 100)} if committed > first else {},
        )  # fmt: skip
        found.append(window)
        minute += rng.choice((1,) * 120 + (2, 3, 17, 70, 150))
        if rng.random() < 0.05:
            epoch += 1
        if rng.random() < 0.03:
            incarnation = rng.choice("abc")
        committed += rng.choice((0,) * 20 + (5,))
    return found


@pytest.mark.parametrize("seed", range(4))
async def test_judged_hours_are_what_all_windows_say(
    usage: Usage, group_id: str, owner: psycopg.Connection, seed: int
) -> None:
    rng = random.Random(seed)
    windows = history(group_id, rng)
    if seed % 2:  # late, and in any order
        rng.shuffle(windows)
    now = START + timedelta(hours=3)
    while windows:
        count = rng.randrange(1, 120)
        batch, windows = windows[:count], windows[count:]
        await usage.ingest(batch)
        now += rng.random() * (LATER - now) / 2
        if rng.random() < 0.7:
            await roll_up(usage.engine, now.timestamp())
        if rng.random() < 0.5:
            await pack_hours(usage.engine, now.timestamp())
        assert await measured(usage, group_id, now) == await from_windows(usage, group_id, now), seed
    await roll_up(usage.engine, LATER.timestamp())
    expected = await from_windows(usage, group_id, LATER)
    assert await measured(usage, group_id, LATER) == expected
    # The judgement of packed hours is the same.
    await pack_hours(usage.engine, LATER.timestamp() + DAY_S)
    assert owner.execute("SELECT count(*) FROM usage_windows").fetchone() == (0,)
    owner.execute("DELETE FROM sla_hours")
    assert await measured(usage, group_id, LATER) == expected
    assert expected.minutes_counted == 24 * 60 - 20, "the group began in the 21st minute"


async def test_a_former_heads_reports_hide_no_earlier_report_of_the_head(usage: Usage, group_id: str) -> None:
    """Nothing of the head arrives in the second hour, and a former head goes on to report that it cannot accept."""

    def of(epoch: int, minute: int, active_ms: int) -> Window:
        start_s = START_S + minute * WINDOW_S
        return Window(
            group_id, epoch, "a", epoch, start_s, "head", active_ms=active_ms, paused_ms=60_000 - active_ms,
            from_ms=start_s * 1_000, to_ms=start_s * 1_000 + active_ms,
        )  # fmt: skip

    head = [of(2, minute, 60_000) for minute in (*range(30, 55), *range(130, 180))]
    former = [of(1, minute, 0) for minute in range(50, 65)]
    await usage.ingest([*head, *former])
    await roll_up(usage.engine, LATER.timestamp())
    report = await measured(usage, group_id, LATER)
    assert report == await from_windows(usage, group_id, LATER)
    throughput = next(each for each in report.attainments if each.clause.name == "throughput")
    assert throughput.good_minutes == 25 + 75 + 50, "the head was there between its reports, and nothing was appended"


async def test_a_report_needs_no_windows_of_judged_hours(
    usage: Usage, group_id: str, owner: psycopg.Connection
) -> None:
    await usage.ingest(history(group_id, random.Random(9)))
    expected = await from_windows(usage, group_id, LATER)
    assert await measured(usage, group_id, LATER) == expected
    await roll_up(usage.engine, LATER.timestamp())
    gone = owner.execute(
        "DELETE FROM usage_windows WHERE EXISTS"
        " (SELECT FROM sla_hours WHERE hour_s = usage_windows.window_start_s / 3600 * 3600)"
    ).rowcount
    assert gone > 50
    assert await measured(usage, group_id, LATER) == expected
    assert expected.incidents
    assert calculator.AVAILABILITY in {each.clause for each in expected.attainments}


async def test_a_settled_day_leaves_its_sums_and_its_bad_minutes(
    usage: Usage, group_id: str, owner: psycopg.Connection, tmp_path: Path
) -> None:
    windows = history(group_id, random.Random(4))
    await usage.ingest(windows)
    expected = await from_windows(usage, group_id, LATER)
    metered = await usage.metered(usage.customers[group_id], None)
    settled_s = START_S + (limits.USAGE_DAYS_KEPT + 1) * DAY_S + HOUR_S
    assert await settle_days(usage.engine, tmp_path, settled_s - 1) == 0, "its windows may still come"
    assert await settle_days(usage.engine, tmp_path, settled_s) == 0, "its hours are not judged yet"
    await roll_up(usage.engine, settled_s)
    assert await pack_hours(usage.engine, START_S + 6 * HOUR_S) > 0
    passes = await asyncio.gather(*(settle_days(usage.engine, tmp_path, settled_s) for _ in range(3)))
    assert sorted(passes) == [0, 0, 1], "one worker settles days at a time"
    assert await settle_days(usage.engine, tmp_path, settled_s) == 0
    assert owner.execute(
        "SELECT (SELECT count(*) FROM usage_windows), (SELECT count(*) FROM usage_dirty)"
    ).fetchone() == (0, 0)
    for table in ("usage_hours", "sla_hours"):
        left = owner.execute(f"SELECT min(hour_s) FROM {table}").fetchone()  # type: ignore[arg-type]
        assert left == (START_S + DAY_S,), "hours of the next day, which was judged first"
    assert owner.execute("SELECT count(*) FROM sla_days").fetchone() == (1,)
    assert await measured(usage, group_id, LATER) == expected
    assert await usage.metered(usage.customers[group_id], None) == metered
    with gzip.open(tmp_path / "usage-2024-10-04.jsonl.gz", "rt") as lines:
        archived = [json.loads(line) for line in lines]
    assert len(archived) == len(windows)
    assert {(line["window_start_s"], line["committed_entries"]) for line in archived} == {
        (window.window_start_s, window.committed_entries) for window in windows
    }


async def test_each_bad_minute_comes_with_its_evidence(
    usage: Usage, alice: Customer, bob: Customer, group_id: str
) -> None:
    await usage.ingest(history(group_id, random.Random(5)))
    await roll_up(usage.engine, START_S + 3 * HOUR_S)
    expected = await from_windows(usage, group_id, LATER)
    path, month = f"/v1/groups/{group_id}/sla/bad-minutes", {"month": f"{START:%Y-%m}", "limit": "200"}
    found: list[dict[str, Any]] = []
    page = await alice.get(path, params=month)
    while len(found) < 2_000:
        found += page["items"]
        page = await alice.get(path, params=month | {"cursor": page["next_cursor"]})
    begins = [datetime.fromisoformat(each["at"]).timestamp() for each in found]
    assert begins == sorted(set(begins))
    counted = {each.clause.name: each.bad_minutes for each in expected.attainments}
    of_day = [each for each, begin in zip(found, begins, strict=True) if begin < END.timestamp()]
    assert {clause: sum(clause in each["missed"] for each in of_day) for clause in counted} == counted
    assert all(each["missed"] for each in found)
    assert any(each["measured"] and each["active_ms"] < each["elapsed_ms"] for each in of_day)
    assert (await bob.request("GET", path)).status_code == 404
    assert (await alice.request("GET", path, params={"month": "2024-13"})).status_code == 422


async def test_hours_of_a_settled_day_are_final(usage: Usage, group_id: str, owner: psycopg.Connection) -> None:
    await usage.ingest(history(group_id, random.Random(4)))
    settled_s = START_S + (limits.USAGE_DAYS_KEPT + 1) * DAY_S + HOUR_S
    await settle_days(usage.engine, None, settled_s)
    await roll_up(usage.engine, settled_s)
    assert await settle_days(usage.engine, None, settled_s) == 1
    expected = await measured(usage, group_id, LATER)
    async with usage.engine.begin() as connection:
        hour = (uuid.UUID(group_id), START_S + HOUR_S)
        await judge_hours(EveryOrganization(connection, "a test"), [hour], int(settled_s))
    assert await measured(usage, group_id, LATER) == expected


async def test_minutes_that_are_not_kept_are_refused(alice: Customer, group_id: str) -> None:
    now = datetime.now(UTC)
    for days, status in ((limits.USAGE_DAYS_KEPT - 1, 200), (limits.USAGE_DAYS_KEPT + 1, 422)):
        begin = now - timedelta(days=days)
        period = {"from": begin.isoformat(), "to": (begin + timedelta(hours=1)).isoformat()}
        answer = await alice.request("GET", f"/v1/groups/{group_id}/usage", params=period)
        assert answer.status_code == status, answer.text
    assert "Minutes are kept for 8 days" in answer.text


async def test_a_day_that_is_young_or_not_summed_up_is_not_removed(
    usage: Usage, group_id: str, owner: psycopg.Connection
) -> None:
    today_s = int(time.time()) // DAY_S * DAY_S
    await usage.ingest([Window(group_id, 1, "a", 1, start_s, "head") for start_s in (START_S, today_s)])
    for day_s, reason in ((START_S, "not summed up"), (today_s, "is young")):
        with pytest.raises(ProgrammingError, match=reason):
            async with usage.engine.begin() as connection:
                await UsageRepository(EveryOrganization(connection, "a test")).drop_day(day_s)
    assert owner.execute("SELECT count(*) FROM usage_windows").fetchone() == (2,)


async def test_two_workers_judge_at_once(usage: Usage, group_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ROLL_HOURS_MAX", 2)
    monkeypatch.setattr(limits, "JUDGED_HOURS_MAX", 1)
    rng = random.Random(11)
    windows = history(group_id, rng)
    rng.shuffle(windows)
    ingesting = True

    async def judge() -> None:
        while ingesting:
            await roll_up(usage.engine, LATER.timestamp())
            await asyncio.sleep(0)

    judging = [asyncio.create_task(judge()) for _ in range(2)]
    for start in range(0, len(windows), 20):
        await usage.ingest(windows[start : start + 20])
    ingesting = False
    await asyncio.gather(*judging)
    await roll_up(usage.engine, LATER.timestamp())
    assert await measured(usage, group_id, LATER) == await from_windows(usage, group_id, LATER)
