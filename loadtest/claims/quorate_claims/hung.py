"""A disk of one server hangs: how long until no chain has that server, and does a healthy one leave for it?

A library holds the syncs of one server (`quorate_harness.held_syncs`). Its threads that send heartbeats go on. One or
thirty persistent groups of degree 2 or 3 receive appends all the while. The time of a trial begins when syncs cease
to return, and ends when no chain has the server. Then the syncs return, and the fleet becomes whole again. After each
trial all logs are read back: everything that was acknowledged is there, once.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from quorate_claims.claim import Conditions
from quorate_harness.figures import Figure
from quorate_harness.fleet import Fleet, MeasurementFailed, fleet
from quorate_harness.held_syncs import HeldSyncs
from quorate_harness.quantiles import median, quantile
from quorate_harness.steady import Steady
from quorate_local.native import CannotCompile

SERVERS = 5
SHAPES = ((2, 1), (2, 30), (3, 1), (3, 30))  # degree, groups
TRIALS, TRIALS_QUICK = 13, 1  # of each shape
GOAL_S = 3.0
RATE_PER_S = {1: 500, 30: 900}  # by the number of groups, all together
RETENTION_BYTES = 64 << 20  # many times what a trial appends; thirty groups with more do not fit a server's memory
OUT_TIMEOUT_S = 30.0
STAYS_S = (0.5, 2.0)  # the hang goes on for so long after that
RECOVER_TIMEOUT_S = 60.0
SETTLE_S = (0.3, 0.8)
LOOK_S = 0.02
WRONG_KINDS = ("server_failed", "server_slow")


@dataclass(frozen=True)
class Trial:
    degree: int
    groups: int
    out_s: float
    was_head: bool
    wrong: tuple[str, ...]  # healthy servers that were taken out


def measure(conditions: Conditions) -> list[Figure]:
    each = conditions.trials or (TRIALS_QUICK if conditions.quick else TRIALS)
    try:
        syncs = HeldSyncs(conditions.folder)
    except CannotCompile as error:
        raise MeasurementFailed(str(error)) from error
    done: list[Trial] = []
    with fleet(conditions.folder, conditions.display, SERVERS, server_env=syncs.environment()) as servers:
        for degree, count in SHAPES:
            done += _shape(servers, syncs, degree, count, each, done)
    for line in _table(done):
        conditions.display.line(f"  {line}")
    return figures(done)


def _shape(
    servers: Fleet, syncs: HeldSyncs, degree: int, count: int, each: int, before: Sequence[Trial]
) -> list[Trial]:
    """Trials, each with so many new groups of this degree. A load's handles do not change while other servers take its
    groups over, and its entries that were refused would be missing to the next one."""
    project_id = str(uuid4())
    sla = {"durability": "persistent", "replication_degree": degree, "request_size_bytes": 64, "rate_per_s": 600}
    rate = ("--rate", str(RATE_PER_S[count]))
    done: list[Trial] = []
    for number in range(each):
        worst = max((trial.out_s for trial in [*before, *done]), default=0)
        what = f"degree {degree}, {count} groups, trial {number + 1} of {each}"
        servers.display.progress(f"  {what}   slowest so far {worst:.1f} s")
        groups = [servers.admit_group(project_id, retention_bytes=RETENTION_BYTES, **sla) for _ in range(count)]
        _wait_whole(servers, groups)
        with ExitStack() as stack:
            stack.callback(syncs.release)
            load = stack.enter_context(Steady(servers, f"d{degree}-{count}", groups, *rate))
            done.append(_trial(servers, syncs, groups, degree))
            _wait_whole(servers, groups)
            load.end()
            load.verify()
        for group_id in groups:
            servers.delete_group(group_id)
    return done


def _trial(servers: Fleet, syncs: HeldSyncs, groups: Sequence[str], degree: int) -> Trial:
    time.sleep(random.uniform(*SETTLE_S))
    chain = random.choice(_chains(servers, groups))
    victim = random.choice(chain)
    name = _name_of(servers, victim)
    after = servers.last_event()
    healthy = {group_id: set(chain) - {victim} for group_id, chain in _chains_by_id(servers, groups).items()}
    syncs.hang(servers.pid(name))
    begun = time.monotonic()
    while any(victim in chain for chain in _chains(servers, groups)):
        if time.monotonic() - begun > OUT_TIMEOUT_S:
            raise MeasurementFailed(f"{name} hangs, and is still in a chain after {OUT_TIMEOUT_S:.0f} s")
        time.sleep(LOOK_S)
    out_s = time.monotonic() - begun
    time.sleep(random.uniform(*STAYS_S))
    chains = _chains_by_id(servers, groups)
    left = {server for group_id, members in healthy.items() for server in members - set(chains[group_id])}
    accused = {
        event["server_id"]
        for event in servers.events(after)
        if event["kind"] in WRONG_KINDS and event["server_id"] != victim
    }
    syncs.release()
    servers.wait(lambda: servers.servers()[victim]["alive"], f"{name} to return", RECOVER_TIMEOUT_S)
    wrong = tuple(sorted(_name_of(servers, server) for server in left | accused))
    return Trial(degree, len(groups), out_s, chain[0] == victim, wrong)


def _name_of(servers: Fleet, server_id: int) -> str:
    return servers.stack.servers_by_address()[servers.servers()[server_id]["address"]]


def _chains_by_id(servers: Fleet, groups: Sequence[str]) -> dict[str, list[int]]:
    wanted = set(groups)
    return {
        group["group_id"]: [replica["server_id"] for replica in group["replicas"]]
        for group in servers.groups()
        if group["group_id"] in wanted
    }


def _chains(servers: Fleet, groups: Sequence[str]) -> list[list[int]]:
    return list(_chains_by_id(servers, groups).values())


def _wait_whole(servers: Fleet, groups: Sequence[str]) -> None:
    wanted = set(groups)

    def whole() -> bool:
        found = [group for group in servers.groups() if group["group_id"] in wanted]
        return len(found) == len(wanted) and all(_is_whole(group) for group in found)

    servers.wait(whole, "the groups' full degree", RECOVER_TIMEOUT_S)


def _is_whole(group: dict[str, Any]) -> bool:
    alive = [replica for replica in group["replicas"] if replica["alive"]]
    is_full = len(alive) == group["sla"]["replication_degree"]
    return is_full and group["status"] == "active" and not group["learners"]


def _table(trials: Sequence[Trial]) -> list[str]:
    lines = [f"{'':<24}{'trials':>8}{'median s':>10}{'greatest s':>12}{'wrong':>7}"]
    for degree, count in SHAPES:
        of = [trial for trial in trials if (trial.degree, trial.groups) == (degree, count)]
        times = [trial.out_s for trial in of]
        wrong = sum(len(trial.wrong) for trial in of)
        name = f"degree {degree}, {count} groups"
        lines.append(f"{name:<24}{len(of):>8}{median(times):>10.2f}{max(times):>12.2f}{wrong:>7}")
    return lines


def figures(trials: Sequence[Trial]) -> list[Figure]:
    """Pure."""
    times = [trial.out_s for trial in trials]
    heads = sum(trial.was_head for trial in trials)
    note = (
        f"{len(trials)} hangs of a server's syncs, {heads} of them at a head, in one or thirty persistent groups of "
        "degree 2 and 3; until no chain has that server"
    )
    wrong = float(sum(len(trial.wrong) for trial in trials))
    wrong_note = "healthy servers that left a chain, failed or counted as slow meanwhile"
    return [
        Figure("hung_sync_eviction_p99_s", quantile(times, 0.99), "s", GOAL_S, note=note),
        Figure("hung_sync_eviction_median_s", median(times), "s"),
        Figure("hung_sync_wrong_evictions", wrong, "servers", 0, note=wrong_note),
    ]
