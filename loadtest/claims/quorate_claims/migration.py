"""Replicas move to other servers under load: is anything lost, and how much do clients notice?

A group and the partitions of another hold logs of some size, and clients append to one of the two. All replicas of the
group, or one of each partition, move to other servers, one after the other, heads too (`POST /v1/groups/{id}/moves`).
Latency and throughput while they move are compared with those just after, several times; medians count. Latency is that
of an open loop at nine tenths of the reserved rate, and throughput that of clients who always want more than they get.

In other trials the source of a move, its target, or the coordinator that leads is killed with kill -9 in the middle of
it. All entries that were acknowledged are read back at the end, once and in order.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from quorate_claims.claim import Conditions
from quorate_harness.figures import Figure
from quorate_harness.fleet import Fleet, MeasurementFailed, fleet
from quorate_harness.quantiles import median
from quorate_harness.steady import Steady, Window

SERVERS, COORDINATORS = 5, 3
ENTRY_BYTES = 1_024
CHAIN_PER_S, OFFERED_PER_S = 500, 450  # reserved and offered, of each chain
PARTITIONS = 4
OUTSTANDING_PER_CHAIN = 64
LOG_BYTES, LOG_BYTES_QUICK = 16_000_000, 4_000_000  # each chain's log, before the first move
ROUNDS, ROUNDS_QUICK = 5, 1
KILLS, KILLS_QUICK = 12, 3
FILL_TIMEOUT_S, MOVE_TIMEOUT_S = 120.0, 60.0
SETTLE_S = 1.0
KILLED_WITHIN_S = 0.4  # kills hit all phases of a move
P99_RATIO_MAX, THROUGHPUT_MIN = 2.0, 0.95
MOVED = ("whole group", "partitions")


@dataclass(frozen=True)
class Pair:
    """The same load, without moves and with them."""

    quiet: Window
    moving: Window
    seconds: float
    moves: int


@dataclass(frozen=True)
class Read:
    """Entries that were acknowledged, and those of them that were not read back."""

    acked: int
    lost: int


@dataclass(frozen=True)
class Seen:
    """`open_loop`, `closed_loop`: by what moved. `read`: by load."""

    open_loop: dict[str, list[Pair]]
    closed_loop: dict[str, list[Pair]]
    read: list[Read]
    kills: int


def measure(conditions: Conditions) -> list[Figure]:
    rounds = ROUNDS_QUICK if conditions.quick else conditions.trials or ROUNDS
    kills = KILLS_QUICK if conditions.quick else KILLS
    log_bytes = LOG_BYTES_QUICK if conditions.quick else LOG_BYTES
    with fleet(conditions.folder, conditions.display, SERVERS, coordinators=COORDINATORS) as servers:
        chains = _groups(servers, log_bytes)
        for name, ids in chains.items():
            _fill(servers, name, ids, log_bytes)
        read = []
        open_loop: dict[str, list[Pair]] = {}
        closed_loop: dict[str, list[Pair]] = {}
        for name, ids in chains.items():
            offered = ("--rate", str(OFFERED_PER_S * len(ids)))
            paced, open_loop[name] = _loaded(servers, f"open loop, {name}", ids, rounds, *offered)
            outstanding = ("--outstanding", str(OUTSTANDING_PER_CHAIN * len(ids)))
            pressed, closed_loop[name] = _loaded(servers, f"closed loop, {name}", ids, rounds, *outstanding)
            read += [paced, pressed]
        every = [group_id for ids in chains.values() for group_id in ids]
        read.append(_killed(servers, every, kills))
    return figures(Seen(open_loop, closed_loop, read, kills))


def _groups(servers: Fleet, log_bytes: int) -> dict[str, list[str]]:
    retention = {"retention_bytes": 2 * log_bytes}
    whole = servers.create_group("whole", "persistent", CHAIN_PER_S, ENTRY_BYTES, **retention)
    sla = {"partitions": PARTITIONS, "retention_bytes": 2 * log_bytes * PARTITIONS}
    partitioned = servers.create_group("partitioned", "persistent", PARTITIONS * CHAIN_PER_S, ENTRY_BYTES, **sla)
    return dict(zip(MOVED, ([whole], servers.partitions(partitioned)), strict=True))


def _fill(servers: Fleet, name: str, ids: Sequence[str], log_bytes: int) -> None:
    begun, written = time.monotonic(), 0
    with Steady(servers, "fill", list(ids), "--size", str(ENTRY_BYTES), "--pace") as load:
        while written < log_bytes * len(ids):
            if time.monotonic() - begun > FILL_TIMEOUT_S:
                raise MeasurementFailed(f"only {written / 1e6:,.0f} MB were written in {FILL_TIMEOUT_S:.0f} s")
            time.sleep(0.1)
            written += load.mark("fill").acked * ENTRY_BYTES
            servers.display.progress(f"  {name}: {written / 1e6:,.0f} of {log_bytes * len(ids) / 1e6:,.0f} MB written")
        load.end()


def _loaded(servers: Fleet, what: str, ids: Sequence[str], rounds: int, *flags: str) -> tuple[Read, list[Pair]]:
    pairs = []
    name = what.replace(", ", "-").replace(" ", "-")
    with Steady(servers, name, list(ids), "--size", str(ENTRY_BYTES), *flags) as load:
        for number in range(rounds):
            which = f"{what}, {number + 1} of {rounds}"
            pairs.append(_pair(servers, load, _moves(servers, ids, number), which))
            servers.display.line(f"  {which}: {_spoken(pairs[-1])}")
        read = _end(servers, load)
    return read, pairs


def _moves(servers: Fleet, ids: Sequence[str], number: int) -> list[tuple[str, int]]:
    """Replicas that are to move: all of one group, the head last; or one of each partition, each position in turn."""
    if len(ids) == 1:
        return [(ids[0], server_id) for server_id in reversed(_members(servers, ids[0]))]
    members = [(group_id, _members(servers, group_id)) for group_id in ids]
    return [(group_id, found[(number + place) % len(found)]) for place, (group_id, found) in enumerate(members)]


def _pair(servers: Fleet, load: Steady, moves: Sequence[tuple[str, int]], which: str) -> Pair:
    time.sleep(SETTLE_S)
    load.mark("moving")
    begun = time.monotonic()
    for group_id, server_id in moves:
        servers.display.progress(f"  {which}: server {server_id} leaves {group_id}")
        servers.move(group_id, server_id)
        _moved(servers, group_id, server_id)
    moving = load.mark("settling")
    seconds = time.monotonic() - begun
    time.sleep(SETTLE_S)
    load.mark("quiet")
    servers.display.progress(f"  {which}: nothing moves")
    time.sleep(seconds)
    return Pair(load.mark("between"), moving, seconds, len(moves))


def _members(servers: Fleet, group_id: str) -> list[int]:
    return [replica["server_id"] for replica in servers.group(group_id)["replicas"]]


def _moved(servers: Fleet, group_id: str, server_id: int) -> None:
    def has_moved() -> bool:
        group = servers.group(group_id)
        members = [replica["server_id"] for replica in group["replicas"]]
        return server_id not in members and group.get("relocation") is None and not group["learners"]

    servers.wait(has_moved, f"server {server_id} to leave {group_id}", MOVE_TIMEOUT_S)


def _killed(servers: Fleet, every: Sequence[str], kills: int) -> Read:
    """Appends while servers and coordinators are killed in the middle of moves."""
    rate = str(OFFERED_PER_S * len(every))
    with Steady(servers, "killed", list(every), "--size", str(ENTRY_BYTES), "--rate", rate) as load:
        for number in range(kills):
            group_id = every[number % len(every)]
            source, target = _begin(servers, group_id, number)
            time.sleep(random.uniform(0, KILLED_WITHIN_S))
            victims = (_name(servers, source), _name(servers, target), servers.stack.leader_name())
            victim = victims[number % len(victims)]
            servers.display.progress(f"  kill {number + 1} of {kills}: {victim}")
            servers.stack.crash(victim)
            servers.wait_whole(*[one for one in every if one != group_id], timeout_s=MOVE_TIMEOUT_S)
            _ended(servers, group_id)
            servers.stack.restart(victim)
            servers.wait(lambda: _all_alive(servers), f"{victim} to return", MOVE_TIMEOUT_S)
        return _end(servers, load)


def _name(servers: Fleet, server_id: int) -> str:
    return servers.stack.servers_by_address()[servers.servers()[server_id]["address"]]


def _begin(servers: Fleet, group_id: str, number: int) -> tuple[int, int]:
    """Source and target of a move that begins once nothing else moves: the fleet may move replicas on its own."""
    begun: list[tuple[int, int]] = []

    def has_begun() -> bool:
        if not _is_settled(servers, group_id):
            return False
        members = _members(servers, group_id)
        source = members[number % len(members)]
        target = next(id_ for id_ in sorted(servers.servers()) if id_ not in members)
        try:
            servers.move(group_id, source, target)
        except MeasurementFailed:  # something else began to move in this moment
            return False
        begun.append((source, target))
        return True

    servers.wait(has_begun, "a move to begin", MOVE_TIMEOUT_S)
    return begun[0]


def _ended(servers: Fleet, group_id: str) -> None:
    servers.wait(lambda: _is_settled(servers, group_id), "the move to end", MOVE_TIMEOUT_S)


def _is_settled(servers: Fleet, group_id: str) -> bool:
    group = servers.group(group_id)
    return servers.is_whole(group_id) and not group["learners"] and group.get("relocation") is None


def _all_alive(servers: Fleet) -> bool:
    known: list[dict[str, Any]] = list(servers.servers().values())
    return len(known) == SERVERS and all(server["alive"] for server in known)


def _end(servers: Fleet, load: Steady) -> Read:
    """Reads everything back; entries out of place are `MeasurementFailed`."""
    ended = load.end()
    if ended["refused"]:
        raise MeasurementFailed(f"appends were refused: {ended['refused']}")
    found = load.verify()
    servers.display.line(f"  {found}")
    acked = sum(numbers["count"] for run in ended["runs"] for numbers in run["acked"])
    missing = re.findall(r"(\d+) missing", found)
    if not missing:
        raise MeasurementFailed(f"the reader does not say what is missing: {found}")
    return Read(acked, sum(map(int, missing)))


def _spoken(pair: Pair) -> str:
    quiet, moving = pair.quiet, pair.moving
    return (
        f"{pair.moves} moves in {pair.seconds:.1f} s; p99 {quiet.p99_us:,} µs quiet, {moving.p99_us:,} µs moving; "
        f"{quiet.acked_per_s:,.0f}/s quiet, {moving.acked_per_s:,.0f}/s moving; longest {moving.max_us / 1e3:,.0f} ms"
    )


def figures(seen: Seen) -> list[Figure]:
    """Pure."""

    def p99_ratio(pairs: Sequence[Pair]) -> float:
        return median([pair.moving.p99_us for pair in pairs]) / median([pair.quiet.p99_us for pair in pairs])

    def throughput_ratio(pairs: Sequence[Pair]) -> float:
        return median([p.moving.acked_per_s for p in pairs]) / median([p.quiet.acked_per_s for p in pairs])

    p99 = {name: round(p99_ratio(pairs), 3) for name, pairs in seen.open_loop.items()}
    throughput = {name: round(throughput_ratio(pairs), 3) for name, pairs in seen.closed_loop.items()}
    acked = sum(one.acked for one in seen.read)
    longest = max(pair.moving.max_us for pairs in seen.open_loop.values() for pair in pairs)
    moves = sum(pair.moves for pairs in (seen.open_loop, seen.closed_loop) for each in pairs.values() for pair in each)
    each = ", ".join(f"{name} {value}" for name, value in p99.items())
    return [
        Figure(
            "migration_appends_lost",
            sum(one.lost for one in seen.read),
            "entries",
            0,
            note=f"{acked:,} entries acknowledged and read back; {moves} moves, and {seen.kills} with a kill -9",
        ),
        Figure(
            "migration_p99_ratio",
            max(p99.values()),
            "ratio",
            P99_RATIO_MAX,
            note=f"open loop at {OFFERED_PER_S / CHAIN_PER_S:g} of the SLA: {each}",
        ),
        Figure(
            "migration_throughput_ratio",
            min(throughput.values()),
            "ratio",
            THROUGHPUT_MIN,
            True,
            note="closed loop: " + ", ".join(f"{name} {value}" for name, value in throughput.items()),
        ),
        Figure("migration_longest_append_ms", round(longest / 1e3, 1), "ms"),
    ]
