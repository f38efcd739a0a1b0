"""Probers' reports: their verdict against counting by the millisecond, their storage, and what they make of an SLA."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api.outside.verdict import Look, Time, overlap_ms, unreachable, without
from quorate_api.telemetry.windows import HOUR_S, WINDOW_S, Window
from quorate_api.worker.outside import judge_late_looks
from quorate_api.worker.rollup import pack_hours, roll_up
from support.customer import Customer, problem
from support.usage import Usage

MINUTE_S = 1_700_000_040
SINCE_H = 12  # the group's age, which may reach into the month before
SPAN = range(60)  # of a minute, in seconds: enough to tell rules apart


def times(*pairs: tuple[int, int]) -> list[Time]:
    return [(MINUTE_S * 1_000 + begin * 1_000, MINUTE_S * 1_000 + end * 1_000) for begin, end in pairs]


def look(prober: str, **failed: list[tuple[int, int]]) -> Look:
    return Look(prober, MINUTE_S, {int(server[1:]): times(*pairs) for server, pairs in failed.items()})


# --- The verdict


def test_a_lone_prober_is_believed_about_one_server() -> None:
    assert unreachable([look("a", s1=[(5, 10)], s2=[])]) == {1: times((5, 10))}


def test_a_lone_prober_that_reaches_nothing_is_not_believed() -> None:
    assert unreachable([look("a", s1=[(5, 10)], s2=[(7, 20)])]) == {1: times((5, 7)), 2: times((10, 20))}
    assert unreachable([look("a", s1=[(5, 10)])]) == {1: times((5, 10))}  # it watches this one alone


def test_two_probers_have_to_agree() -> None:
    both = [look("a", s1=[(5, 10)], s2=[(5, 10)]), look("b", s1=[(8, 20)], s2=[])]
    assert unreachable(both) == {1: times((8, 10)), 2: []}
    assert unreachable([look("a", s1=[(5, 10)], s2=[]), look("b", s2=[])]) == {1: times((5, 10))}


def test_two_of_three_are_enough() -> None:
    three = [look("a", s1=[(0, 10)]), look("b", s1=[(5, 15)]), look("c", s1=[(8, 9), (12, 14)])]
    assert unreachable(three) == {1: times((5, 10), (12, 14))}


PAIRS = st.lists(st.integers(0, 60), max_size=6, unique=True).map(
    lambda ends: [(begin, end) for begin, end in zip(*[iter(sorted(ends))] * 2, strict=False)]
)
LOOKS = st.lists(st.dictionaries(st.sampled_from(["s1", "s2", "s3"]), PAIRS), min_size=1, max_size=4)


@settings(max_examples=300, deadline=None)
@given(LOOKS)
def test_the_verdict_counted_second_by_second(seen: list[dict[str, list[tuple[int, int]]]]) -> None:
    found = unreachable([look(f"p{number}", **failed) for number, failed in enumerate(seen)])
    for name in ("s1", "s2", "s3"):
        for second in SPAN:

            def fails(failed: dict[str, list[tuple[int, int]]], server: str, at: int = second) -> bool:
                return any(begin <= at < end for begin, end in failed[server])

            watching = [failed for failed in seen if name in failed]
            against = sum(fails(failed, name) for failed in watching)
            alone = len(watching) == 1 and len(watching[0]) > 1
            if alone and all(fails(watching[0], server) for server in watching[0]):
                against = 0
            at_ms = (MINUTE_S + second) * 1_000
            said = overlap_ms(found.get(int(name[1:]), ()), at_ms, at_ms + 1_000)
            assert said == (1_000 if 2 * against > len(watching) else 0)


@given(PAIRS, PAIRS)
def test_times_without_others(left: list[tuple[int, int]], right: list[tuple[int, int]]) -> None:
    seconds = {at for begin, end in left for at in range(begin, end)}
    taken = {at for begin, end in right for at in range(begin, end)}
    assert {at for begin, end in without(left, right) for at in range(begin, end)} == seconds - taken


# --- Reports


def told(minute_s: int, *failed: tuple[int, int, int], watched: tuple[int, ...] = (1, 2, 3)) -> dict[str, Any]:
    """`failed`: a server, and the seconds of the minute from which and until which it did not answer."""
    servers = dict.fromkeys(server for server, _, _ in failed)
    return {
        "minute_s": minute_s,
        "watched": list(watched),
        "failed": [
            {
                "server_id": one,
                "times": [[begin * 1_000, end * 1_000] for server, begin, end in failed if server == one],
            }
            for one in servers
        ],
    }


async def tell(prober: httpx2.AsyncClient, *minutes: dict[str, Any], name: str = "a") -> httpx2.Response:
    return await prober.post("/v1/prober/minutes", json={"prober": name, "minutes": list(minutes)})


def this_minute_s(ago: int = 1) -> int:
    return (int(time.time()) // WINDOW_S - ago) * WINDOW_S


async def test_targets_are_all_servers(prober: httpx2.AsyncClient) -> None:
    answer = (await prober.get("/v1/prober/targets")).json()
    assert [server["server_id"] for server in answer["servers"]] == [1, 2, 3]
    assert answer["ca_pem"]


async def test_a_minute_is_told_once(prober: httpx2.AsyncClient, owner: psycopg.Connection) -> None:
    minute_s = this_minute_s()
    assert (await tell(prober, told(minute_s, (1, 5, 9)))).json() == {"minutes": 1}
    assert (await tell(prober, told(minute_s))).json() == {"minutes": 1}
    assert (await tell(prober, told(minute_s - 30 * 24 * HOUR_S))).json() == {"minutes": 0}
    rows = owner.execute("SELECT minute_s, prober, watched, failed, late FROM prober_minutes").fetchall()
    begin_ms = minute_s * 1_000
    assert rows == [(minute_s, "a", [1, 2, 3], {"1": [[begin_ms + 5_000, begin_ms + 9_000]]}, False)]


@pytest.mark.parametrize(
    ("minute", "field"),
    [
        (told(MINUTE_S, (4, 0, 5)), "was not watched"),
        (told(MINUTE_S, (1, 0, 61)), "less than or equal"),
        (told(MINUTE_S, (1, 5, 5)), "in order"),
        (told(MINUTE_S, (1, 5, 9), (1, 8, 10)), "not overlap"),
        (told(MINUTE_S + 1), "multiple"),
        (told(MINUTE_S, watched=(0,)), "greater"),
        (told(4_102_444_800), "clock is ahead"),
    ],
)
async def test_odd_reports_are_refused(prober: httpx2.AsyncClient, minute: dict[str, Any], field: str) -> None:
    answer = await tell(prober, minute)
    problem(answer, 422, "validation_failed")
    assert field in answer.text


# --- The SLA


@pytest.fixture
async def group_id(alice: Customer, owner: psycopg.Connection) -> str:
    group_id: str = (await alice.create_group())["id"]
    since = datetime.now(UTC) - timedelta(hours=SINCE_H)
    owner.execute("UPDATE groups SET created_at = %s, active_at = %s", (since, since))
    return group_id


@pytest.fixture
def usage(worker_engine: AsyncEngine, alice: Customer, group_id: str) -> Usage:
    return Usage(worker_engine, {group_id: alice})


def window(group_id: str, minute_s: int, server: int = 1, epoch: int = 1) -> Window:
    return Window(
        group_id, server, "a", epoch, minute_s, "head", active_ms=60_000,
        from_ms=minute_s * 1_000, to_ms=minute_s * 1_000 + 60_000,
    )  # fmt: skip


async def unreachable_minutes(alice: Customer, group_id: str) -> dict[int, tuple[int, int]]:
    """Active and unreachable time of minutes of the last hours that have telemetry and miss availability."""
    items, now = [], datetime.now(UTC)
    for month in sorted({f"{at:%Y-%m}" for at in (now - timedelta(hours=SINCE_H), now)}):
        page: dict[str, Any] = {"limit": 200, "month": month}
        while page:
            listed = await alice.get(f"/v1/groups/{group_id}/sla/bad-minutes", params=page)
            items += listed["items"]
            page = {**page, "cursor": listed["next_cursor"]} if listed["next_cursor"] else {}
    found = {}
    for each in items:
        if each["measured"] and "availability" in each["missed"]:
            at_s = int(datetime.fromisoformat(each["at"]).timestamp())
            found[at_s] = (each["active_ms"], each["unreachable_ms"])
    return found


async def test_a_head_that_clients_cannot_reach_is_not_available(
    usage: Usage, alice: Customer, prober: httpx2.AsyncClient, group_id: str
) -> None:
    minute_s = this_minute_s(5)
    await usage.ingest([window(group_id, minute_s + 60 * number) for number in range(3)])
    assert await unreachable_minutes(alice, group_id) == {}
    await tell(prober, told(minute_s, (2, 0, 60)), told(minute_s + 60, (1, 10, 22)))
    assert await unreachable_minutes(alice, group_id) == {minute_s + 60: (48_000, 12_000)}


async def test_a_quiet_minute_is_lost_too(
    usage: Usage, alice: Customer, prober: httpx2.AsyncClient, group_id: str
) -> None:
    minute_s = this_minute_s(6)
    await usage.ingest([window(group_id, minute_s), window(group_id, minute_s + 180)])
    await tell(prober, told(minute_s + 60, (1, 10, 22)), told(minute_s + 120, (3, 0, 60)))
    assert await unreachable_minutes(alice, group_id) == {minute_s + 60: (48_000, 12_000)}


@pytest.mark.parametrize("packed", [False, True])
async def test_hours_are_judged_again_by_a_late_report(
    usage: Usage, alice: Customer, prober: httpx2.AsyncClient, group_id: str, packed: bool
) -> None:
    now_s = time.time()
    hour_s = int(now_s // HOUR_S - 5) * HOUR_S
    await usage.ingest([window(group_id, hour_s + WINDOW_S * number) for number in range(60)])
    await roll_up(usage.engine)
    if packed:
        assert await pack_hours(usage.engine) == 1
    assert await unreachable_minutes(alice, group_id) == {}
    assert await judge_late_looks(usage.engine) == 0
    await tell(prober, told(hour_s + 600, (1, 10, 22)))
    assert await judge_late_looks(usage.engine) == 1
    assert await unreachable_minutes(alice, group_id) == {hour_s + 600: (48_000, 12_000)}
    assert await judge_late_looks(usage.engine) == 0
    # A second prober reached it.
    await tell(prober, told(hour_s + 600), name="b")
    assert await judge_late_looks(usage.engine) == 1
    assert await unreachable_minutes(alice, group_id) == {}


async def test_reports_in_time_count_when_the_hour_is_judged(
    usage: Usage, alice: Customer, prober: httpx2.AsyncClient, group_id: str, owner: psycopg.Connection
) -> None:
    hour_s = int(time.time() // HOUR_S - 3) * HOUR_S
    await usage.ingest([window(group_id, hour_s + WINDOW_S * number) for number in range(60)])
    await tell(prober, told(hour_s + 600, (1, 10, 22)))
    owner.execute("UPDATE prober_minutes SET late = false")
    await roll_up(usage.engine)
    assert await judge_late_looks(usage.engine) == 0
    assert await unreachable_minutes(alice, group_id) == {hour_s + 600: (48_000, 12_000)}
