"""Capacity of one server and of one coordinator.

Idle groups are admitted on a server, which is restarted. A coordinator places groups on servers that are played
(`quorate-load control-fleet`).
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from uuid import uuid4

from quorate_claims.claim import Conditions
from quorate_harness.figures import Figure
from quorate_harness.fleet import Fleet, MeasurementFailed, fleet
from quorate_harness.processor import ProcessorTime
from quorate_local.components import binary
from quorate_local.options import ServerResources

GROUPS, GROUPS_QUICK = 50_000, 1_000
GOAL_GROUPS = 50_000
GOAL_RESTART_S = 30.0
SERVERS, SERVERS_QUICK = 100, 4
REPLICAS, REPLICAS_QUICK = 201_000, 1_200
GOAL_REPLICAS = 200_000
GOAL_CORES = 0.5
DEGREE = 3
# Groups, of a thousand on a server, that have grown at each heartbeat.
ACTIVE_PERMILLE = 10
# More than these groups ask for together, and than this machine has: their number is measured, not what they may fill.
RESOURCES = ServerResources(
    cpu_cores=4_000.0, network_bytes_per_s=10**12, storage_io_per_s=10**9, memory_bytes=10**12, disk_bytes=10**13
)
CALLERS = 16
FORM_TIMEOUT_S = 120.0
SETTLE_S = 5.0
WINDOW_S, WINDOW_QUICK_S = 15.0, 3.0
# A server that takes configurations in uses a core; one whose groups are idle uses a fifth of one.
CALM_WINDOW_S, CALM_CORES = 0.5, 0.4
# Time in which all groups are admitted and measured; the played servers end with it, if nobody ends them.
PLAY_S = 900


def measure(conditions: Conditions) -> list[Figure]:
    return [*_server(conditions), *_coordinator(conditions)]


def _server(conditions: Conditions) -> list[Figure]:
    """One server with persistent and in-memory groups, restarted."""
    count = GROUPS_QUICK if conditions.quick else GROUPS
    window_s = WINDOW_QUICK_S if conditions.quick else WINDOW_S
    folder = conditions.folder / "server"
    with fleet(folder, conditions.display, 1, server_resources=RESOURCES) as servers:
        kept = count * 4 // 5
        _admit(servers, kept, "persistent", 1)
        _admit(servers, count - kept, "in_memory", 1)
        active = _wait_active(servers, count)
        time.sleep(SETTLE_S)
        memory_mb = servers.memory_bytes("s1")[0] / (1 << 20)
        cores = _cores(servers.pid("s1"), window_s)
        begun = time.monotonic()
        servers.stack.kill_server("s1")
        servers.stack.restart_server("s1")
        _wait_active(servers, kept)
        # A group's status is the coordinator's view. The server has its configurations when it has no more work.
        servers.wait(lambda: _is_calm(servers.pid("s1")), "server s1 to be calm", FORM_TIMEOUT_S)
        restart_s = time.monotonic() - begun
    note = f"{kept} persistent and {count - kept} in-memory groups of degree 1 on one server"
    return [
        Figure("groups_per_server", active, "groups", None if conditions.quick else GOAL_GROUPS, True, note=note),
        Figure("groups_per_server_restart_s", restart_s, "s", GOAL_RESTART_S, note="until all persistent ones serve"),
        Figure("groups_per_server_idle_cores", cores, "cores"),
        Figure("groups_per_server_memory_mb", memory_mb, "MB"),
    ]


def _coordinator(conditions: Conditions) -> list[Figure]:
    """One coordinator with servers that are played."""
    count = (REPLICAS_QUICK if conditions.quick else REPLICAS) // DEGREE
    played = SERVERS_QUICK if conditions.quick else SERVERS
    window_s = WINDOW_QUICK_S if conditions.quick else WINDOW_S
    with fleet(conditions.folder / "coordinator", conditions.display, 0) as servers, _played(servers, played) as player:
        _admit(servers, count, "persistent", DEGREE)
        active = _wait_active(servers, count)
        time.sleep(SETTLE_S)
        cores = _cores(servers.pid("coordinator"), window_s)
        alive = sum(server["alive"] for server in servers.servers().values())
        if alive < played or player.poll() is not None:
            raise MeasurementFailed(f"{alive} of {played} played servers have their leases")
        memory_mb = servers.memory_bytes("coordinator")[0] / (1 << 20)
    note = f"{played} played servers, heartbeats four times a second, {ACTIVE_PERMILLE / 10:g} % of the groups growing"
    goal = None if conditions.quick else GOAL_REPLICAS
    return [
        Figure("groups_per_coordinator", active * DEGREE, "replicas", goal, True, note=note),
        Figure("groups_per_coordinator_cores", cores, "cores", GOAL_CORES),
        Figure("groups_per_coordinator_memory_mb", memory_mb, "MB"),
    ]


def _admit(servers: Fleet, count: int, durability: str, degree: int) -> None:
    project_id = str(uuid4())
    sla = {"durability": durability, "replication_degree": degree, "request_size_bytes": 64, "rate_per_s": 1}

    def admit(number: int) -> None:
        if number % 1_000 == 0:
            servers.display.progress(f"  admitting {durability} group {number} of {count}")
        servers.admit_group(project_id, retention_bytes=1 << 20, **sla)

    with ThreadPoolExecutor(CALLERS) as callers:
        for _ in callers.map(admit, range(count)):
            pass


def _wait_active(servers: Fleet, count: int) -> int:
    """The number of active groups, once there are so many."""

    def active() -> int:
        return sum(group["status"] == "active" for group in servers.groups())

    servers.wait(lambda: active() >= count, f"{count} groups to be active", FORM_TIMEOUT_S)
    return active()


def _cores(pid: int, window_s: float) -> float:
    """Cores that the process uses."""
    before = ProcessorTime.now([pid], None)
    time.sleep(window_s)
    return ProcessorTime.now([pid], None).since(before).servers_s / window_s


def _is_calm(pid: int) -> bool:
    return _cores(pid, CALM_WINDOW_S) < CALM_CORES


@contextmanager
def _played(servers: Fleet, count: int) -> Iterator[subprocess.Popen[bytes]]:
    tokens = servers.folder / "join-tokens"
    tokens.write_text("".join(f"{servers.issue_join_token()}\n" for _ in range(count)))
    tokens.chmod(0o600)
    command = [binary(servers.stack.options, "quorate-load"), "control-fleet", "--join-tokens", str(tokens)]
    command += ["--coordinator", servers.stack.addresses["coordinator_control"], "--seconds", str(PLAY_S)]
    command += ["--active-permille", str(ACTIVE_PERMILLE)]
    with (servers.folder / "control-fleet.log").open("wb") as log:
        player = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            servers.wait(
                lambda: sum(server["alive"] for server in servers.servers().values()) >= count,
                f"{count} played servers to register",
            )
            yield player
        finally:
            player.terminate()
            player.wait(10)
