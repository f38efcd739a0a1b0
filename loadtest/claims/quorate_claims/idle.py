"""Memory that an idle group costs a server.

Groups are admitted by the hundred, each with a replica on every server. The growth of the servers' resident memory is
divided among them.
"""

from __future__ import annotations

import time
from uuid import uuid4

from quorate_claims.claim import Conditions
from quorate_harness.figures import Figure
from quorate_harness.fleet import Fleet, fleet

SERVERS = 3
GROUPS, GROUPS_QUICK = 200, 40
GOAL_KB = 64
FORM_TIMEOUT_S = 60.0
SETTLE_S = 3.0  # a few samples of usage and heartbeats with all groups


def measure(conditions: Conditions) -> list[Figure]:
    count = GROUPS_QUICK if conditions.quick else GROUPS
    found: dict[str, float] = {}
    with fleet(conditions.folder, conditions.display, SERVERS) as servers:
        before = _settled_kb(servers)
        for durability in ("in_memory", "persistent"):
            _admit(servers, durability, count)
            after = _settled_kb(servers)
            grown = {name: (after[name] - before[name]) / count for name in after}
            spoken = ", ".join(f"{name} {kb:,.1f}" for name, kb in grown.items())
            conditions.display.line(f"  {count} groups, {durability}: KB for each at {spoken}")
            found[durability] = max(grown[name] for name in servers.names())
            found["coordinator"] = max(found.get("coordinator", 0), grown["coordinator"])
            before = after
    note = f"{count} groups of each durability with a replica on each of {SERVERS} servers; the server that grew most"
    return [
        Figure("idle_group_kb", max(found["in_memory"], found["persistent"]), "KB", GOAL_KB, note=note),
        Figure("idle_group_in_memory_kb", found["in_memory"], "KB"),
        Figure("idle_group_persistent_kb", found["persistent"], "KB"),
        Figure("idle_group_coordinator_kb", found["coordinator"], "KB"),
    ]


def _admit(servers: Fleet, durability: str, count: int) -> None:
    project_id = str(uuid4())
    groups = set()
    sla = {"durability": durability, "replication_degree": SERVERS, "request_size_bytes": 64, "rate_per_s": 1}
    for number in range(count):
        servers.display.progress(f"  admitting {durability} group {number + 1} of {count}")
        groups.add(servers.admit_group(project_id, retention_bytes=1 << 20, **sla))
    servers.wait_active(groups, FORM_TIMEOUT_S)


def _settled_kb(servers: Fleet) -> dict[str, float]:
    """Resident memory of each server and the coordinator."""
    time.sleep(SETTLE_S)
    return {name: servers.memory_bytes(name)[0] / 1024 for name in [*servers.names(), "coordinator"]}
