"""Probers of a life: what each sees, rightly and wrongly, and when a server was unreachable by the SLA's words."""

from __future__ import annotations

import random
from collections.abc import Iterable

from quorate_sla.oracle.life import BEGIN_MS, MINUTE_MS, STEP_MS, Life, Prober

STEPS = MINUTE_MS // STEP_MS
SERVERS = frozenset((1, 2, 3))
Time = tuple[int, int]


def draw(life: Life) -> tuple[Prober, ...]:
    """Probers see cuts of servers, but for some; and their own connections fail, to one server or to all."""
    chance = random.Random(f"{life.seed} outside")
    cuts = [(chance.randint(1, 3), *_time(chance, life)) for _ in range(chance.choice((0, 1, 1, 2, 3)))]
    cuts += [(server, *_time(chance, life, all_of=cuts)) for server in (1, 2, 3) if cuts and chance.random() < 0.2]
    found = []
    for number in range(chance.choice((0, 1, 1, 2, 3))):
        watches = SERVERS if chance.random() < 0.7 else frozenset(chance.sample((1, 2, 3), chance.randint(1, 3)))
        seen = [(server, from_ms, to_ms) for server, from_ms, to_ms in cuts if chance.random() < 0.9]
        if chance.random() < 0.4:
            from_ms, to_ms = _time(chance, life)
            seen += [(server, from_ms, to_ms) for server in (1, 2, 3)]
        if chance.random() < 0.3:
            seen.append((chance.randint(1, 3), *_time(chance, life)))
        seen = [each for each in seen if not _is_divided(life, each)]
        silent = frozenset(minute for minute in life.minutes if chance.random() < 0.05)
        failed = tuple(each for server in sorted(watches) for each in _apart(server, seen))
        found.append(Prober(f"p{number}", watches, failed, silent))
    return tuple(found)


def _is_divided(life: Life, seen: tuple[int, int, int]) -> bool:
    """Whether the time lies in one of two minutes between which a report divides lost time: their sums would differ."""
    _, from_ms, to_ms = seen
    for reign in life.reigns:
        for outage in reign.outages:
            first, last = (at_ms // MINUTE_MS * MINUTE_MS for at_ms in (outage.from_ms, outage.to_ms))
            if first != last and from_ms < last + MINUTE_MS and to_ms > first:
                return True
    return False


def _time(chance: random.Random, life: Life, all_of: list[tuple[int, int, int]] | None = None) -> Time:
    """A time within the busy part of a life; or that of a cut."""
    if all_of:
        return chance.choice(all_of)[1:]
    minutes = min(len(life.minutes), 12)
    begin_ms = BEGIN_MS + chance.randrange(minutes * STEPS) * STEP_MS
    length_ms = chance.choice((50, 90, 110, 2_000, 8_000, 30_000, 90_000)) // STEP_MS * STEP_MS
    return begin_ms, begin_ms + length_ms


def _apart(server: int, seen: Iterable[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """The server's times, joined where they overlap."""
    found: list[tuple[int, int, int]] = []
    for from_ms, to_ms in sorted((from_ms, to_ms) for one, from_ms, to_ms in seen if one == server):
        if found and from_ms <= found[-1][2]:
            found[-1] = (server, found[-1][1], max(found[-1][2], to_ms))
        else:
            found.append((server, from_ms, to_ms))
    return found


def unreachable(life: Life, server: int, number: int) -> bytes:
    """For each step of a minute, 1 while more than half of the probers that watched the server missed it."""
    watching = [each for each in life.probers if server in each.watches and number not in each.silent]
    votes = [_steps(each.fails(server, number)) for each in watching]
    if not any(1 in vote for vote in votes):
        return bytes(STEPS)
    if len(watching) == 1 and len(watching[0].watches) > 1:
        # A lone prober that reaches none of several servers is not believed.
        others = zip(*(_steps(watching[0].fails(one, number)) for one in watching[0].watches), strict=True)
        return bytes(mine and not all(all_) for mine, all_ in zip(votes[0], others, strict=True))
    return bytes(2 * sum(step) > len(watching) for step in zip(*votes, strict=True))


def _steps(times: Iterable[Time]) -> bytearray:
    marked = bytearray(STEPS)
    for from_ms, to_ms in times:
        first, last = from_ms // STEP_MS, to_ms // STEP_MS
        marked[first:last] = b"\x01" * (last - first)
    return marked
