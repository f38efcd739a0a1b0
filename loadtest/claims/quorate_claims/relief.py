"""A server with five hundred groups becomes slow: how long until the appends of all of them flow again?

All groups have their replicas on the same three servers, since the two others were drained while they were admitted.
The syncs of one of the three then take more than a second each: too long for its groups, and too short for a hang. An
append is made to each group every few seconds, by clients that keep one connection each. The time begins with the
slow syncs. It ends with the acknowledgement of the last append that took longer than a second. It contains the time
for which a server is to be reported before it counts as slow (`--slow-ms`).
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import uuid4

import quorate
from quorate_claims.claim import Conditions
from quorate_harness.figures import Figure
from quorate_harness.fleet import Fleet, MeasurementFailed, fleet
from quorate_harness.held_syncs import HeldSyncs
from quorate_local.native import CannotCompile

SERVERS = 5
SPARE = 2  # servers that are drained while the groups are admitted
GROUPS, GROUPS_QUICK = 500, 30
GOAL_S = 10.0
EVERY_S = 2.0  # between two appends to a group
DELAY_US = 1_300_000
FLOWS_S = 1.0  # an append that takes longer does not flow
CALM_S = 6.0  # so long without such an append, and all flow
APPEND_TIMEOUT_S = 60.0
RELIEF_TIMEOUT_S = 300.0
ATTACH_AT_ONCE = 16
ADMITTED_TIMEOUT_S = 120.0


@dataclass
class Seen:
    """Appends of all groups. Times are of the monotonic clock."""

    acked: int = 0
    failed: list[str] = field(default_factory=list)
    slow_ended: list[tuple[str, float]] = field(default_factory=list)
    waiting: dict[str, float] = field(default_factory=dict)  # since when, by group


def measure(conditions: Conditions) -> list[Figure]:
    count = GROUPS_QUICK if conditions.quick else GROUPS
    display = conditions.display
    try:
        syncs = HeldSyncs(conditions.folder)
    except CannotCompile as error:
        raise MeasurementFailed(str(error)) from error
    with fleet(conditions.folder, display, SERVERS, server_env=syncs.environment()) as servers:
        ids = sorted(servers.servers())
        for server_id in ids[-SPARE:]:
            servers.drain(server_id)
        project_id, groups = str(uuid4()), []
        sla = {"durability": "persistent", "replication_degree": 3, "request_size_bytes": 64, "rate_per_s": 10}
        for number in range(count):
            display.progress(f"  admitting group {number + 1} of {count}")
            groups.append(servers.admit_group(project_id, retention_bytes=1 << 20, **sla))
        servers.wait_active(set(groups), ADMITTED_TIMEOUT_S)
        for server_id in ids[-SPARE:]:
            servers.call_off_drain(server_id)
        slow = ids[0]
        held = sum(slow in members for members in _chains(servers, groups).values())
        if held != count:
            raise MeasurementFailed(f"the server that is to be slow has {held} of {count} groups")
        seconds, out_s = asyncio.run(_run(servers, syncs, groups, slow))
    display.line(f"  {count} groups: no chain has the slow server after {out_s:.1f} s; all flow after {seconds:.1f} s")
    return figures(count, seconds, out_s)


async def _run(servers: Fleet, syncs: HeldSyncs, groups: Sequence[str], slow: int) -> tuple[float, float]:
    """Seconds until all appends flow, and until no chain has the slow server."""
    seen = Seen()
    attached = asyncio.Semaphore(ATTACH_AT_ONCE)
    ready = [asyncio.Event() for _ in groups]
    tasks = [
        asyncio.create_task(_append(servers, group_id, attached, event, seen))
        for group_id, event in zip(groups, ready, strict=True)
    ]
    try:
        for number, event in enumerate(ready):
            servers.display.progress(f"  attaching client {number + 1} of {len(groups)}")
            await asyncio.wait_for(event.wait(), APPEND_TIMEOUT_S)
        await asyncio.sleep(2 * EVERY_S)
        if seen.slow_ended:
            seen.slow_ended.clear()  # while the clients attached
        name = servers.stack.servers_by_address()[servers.servers()[slow]["address"]]
        syncs.slow(servers.pid(name), DELAY_US)
        began = time.monotonic()
        out_s = await _out(servers, groups, slow, began)
        await _calm(servers, seen, began)
        return max((ended for _, ended in seen.slow_ended), default=began) - began, out_s
    finally:
        syncs.release()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if seen.failed:
            raise MeasurementFailed(f"{len(seen.failed)} appends failed, say {seen.failed[0]}")


async def _append(servers: Fleet, group_id: str, attached: asyncio.Semaphore, ready: asyncio.Event, seen: Seen) -> None:
    """Appends to a group, one entry after the other, until it is cancelled."""
    async with attached:
        handle = await asyncio.to_thread(servers.signed_handle, group_id)
        client = await quorate.connect(handle, timeout=APPEND_TIMEOUT_S)
    async with client:
        ready.set()
        await asyncio.sleep(random.uniform(0, EVERY_S))
        while True:
            begun = time.monotonic()
            seen.waiting[group_id] = begun
            try:
                await client.append(b"relief", timeout=APPEND_TIMEOUT_S)
                seen.acked += 1
            except quorate.QuorateError as error:
                seen.failed.append(f"{group_id}: {error}")
            ended = time.monotonic()
            del seen.waiting[group_id]
            if ended - begun > FLOWS_S:
                seen.slow_ended.append((group_id, ended))
            await asyncio.sleep(max(0.0, begun + EVERY_S - ended))


async def _out(servers: Fleet, groups: Sequence[str], slow: int, began: float) -> float:
    while True:
        chains = await asyncio.to_thread(_chains, servers, groups)
        passed = time.monotonic() - began
        still = sum(slow in members for members in chains.values())
        if not still:
            return passed
        if passed > RELIEF_TIMEOUT_S:
            raise MeasurementFailed(f"{still} groups still have the slow server after {passed:.0f} s")
        servers.display.progress(f"  slow for {passed:.0f} s; {still} groups have it")
        await asyncio.sleep(0.2)


async def _calm(servers: Fleet, seen: Seen, began: float) -> None:
    """Until no append has taken long for a while, and none does."""
    while True:
        now = time.monotonic()
        last = max([began, *(ended for _, ended in seen.slow_ended)])
        stuck = sum(now - since > FLOWS_S for since in seen.waiting.values())
        if not stuck and now - last > CALM_S:
            return
        if now - began > RELIEF_TIMEOUT_S:
            raise MeasurementFailed(f"{stuck} groups' appends still do not flow after {now - began:.0f} s")
        servers.display.progress(f"  {now - began:.0f} s; {stuck} groups' appends do not flow")
        await asyncio.sleep(0.2)


def _chains(servers: Fleet, groups: Sequence[str]) -> dict[str, set[int]]:
    wanted = set(groups)
    return {
        group["group_id"]: {replica["server_id"] for replica in group["replicas"]}
        for group in servers.groups()
        if group["group_id"] in wanted
    }


def figures(count: int, seconds: float, out_s: float) -> list[Figure]:
    """Pure."""
    note = (
        f"syncs of a server with {count} persistent groups of degree 3 take {DELAY_US / 1e6:.1f} s more; until every "
        f"append takes less than {FLOWS_S:.0f} s again; no chain has that server after {out_s:.1f} s"
    )
    return [Figure(f"server_relief_s_{count}_groups", seconds, "s", GOAL_S, note=note)]
