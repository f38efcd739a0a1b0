"""Faults that stop appends, or could: processes that crash or stand still, and networks that are cut.

A whole stack on one machine can have these of `loadtest/chaos`. Disks and clocks are left to chaos.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from quorate_harness.customer import Customer
from quorate_local import Stack
from quorate_sla.apart import Filter


@dataclass
class Scene:
    """The stack, and the group that faults aim at."""

    stack: Stack
    customer: Customer
    group_id: str

    def server(self, role: str) -> str:
        replicas = self.customer.placement(self.group_id)["replicas"]
        address = next(each["address"] for each in replicas if each["role"] == role)
        return self.stack.servers_by_address()[str(address)]

    def servers(self) -> list[str]:
        replicas = self.customer.placement(self.group_id)["replicas"]
        return [self.stack.servers_by_address()[str(each["address"])] for each in replicas]

    def filter(self) -> Filter:
        names = {**{name: name for name in self.stack.options.server_names()}, "coordinator": "coordinator_control"}
        ports = {name: int(self.stack.addresses[key].rpartition(":")[2]) for name, key in names.items()}
        return Filter(self.stack.options.group_ids, ports)


@contextmanager
def _killed(scene: Scene, *names: str) -> Iterator[None]:
    for name in names:
        scene.stack.crash(name)
    try:
        yield
    finally:
        for name in names:
            scene.stack.restart(name)


@contextmanager
def _stopped(scene: Scene, *names: str) -> Iterator[None]:
    pids = [scene.stack.processes()[name].identity.pid for name in names]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def _outsiders_cut_off(scene: Scene, *servers: str) -> Any:
    """Clients and probers reach these servers no more. Servers reach one another."""
    outsiders = ["clients", *scene.stack.options.prober_names()]
    return scene.filter().cut(*((outsider, server) for outsider in outsiders for server in servers))


def _apart(scene: Scene, one: str, *others: str) -> Any:
    """A server and these others, the coordinator perhaps, do not reach one another."""
    pairs = [(one, other) for other in others]
    return scene.filter().cut(*pairs, *((other, one) for _, other in pairs if other != "coordinator"))


def _others(scene: Scene, one: str) -> list[str]:
    return [name for name in scene.stack.options.server_names() if name != one]


def _isolated(scene: Scene, *, coordinator: bool) -> Any:
    head = scene.server("head")
    return _apart(scene, head, *_others(scene, head), *(["coordinator"] if coordinator else []))


def _prober_cut_off(scene: Scene) -> Any:
    prober = scene.stack.options.prober_names()[0]
    return scene.filter().cut(*((prober, server) for server in scene.stack.options.server_names()))


Fault = Callable[[Scene], Any]
OF_PROCESSES: dict[str, Fault] = {
    "head killed": lambda scene: _killed(scene, scene.server("head")),
    "follower killed": lambda scene: _killed(scene, scene.server("follower")),
    "tail killed": lambda scene: _killed(scene, scene.server("tail")),
    "head stands still": lambda scene: _stopped(scene, scene.server("head")),
    "follower stands still": lambda scene: _stopped(scene, scene.server("follower")),
    "tail stands still": lambda scene: _stopped(scene, scene.server("tail")),
    "all replicas killed": lambda scene: _killed(scene, *scene.servers()),
    "all replicas stand still": lambda scene: _stopped(scene, *scene.servers()),
    "head and coordinator killed": lambda scene: _killed(scene, "coordinator", scene.server("head")),
    "coordinator killed": lambda scene: _killed(scene, "coordinator"),
    "coordinator stands still": lambda scene: _stopped(scene, "coordinator"),
    "Redis killed": lambda scene: _killed(scene, "redis"),
    "PostgreSQL killed": lambda scene: _killed(scene, "postgres"),
    "workers killed": lambda scene: _killed(scene, *scene.stack.options.worker_names()),
}
# In a network of the run's own.
OF_NETWORKS: dict[str, Fault] = {
    "clients cut off from the head": lambda scene: _outsiders_cut_off(scene, scene.server("head")),
    "clients cut off from the tail": lambda scene: _outsiders_cut_off(scene, scene.server("tail")),
    "clients cut off from all servers": lambda scene: _outsiders_cut_off(scene, *scene.stack.options.server_names()),
    "one prober cut off from all servers": _prober_cut_off,
    "head cut off from servers": lambda scene: _isolated(scene, coordinator=False),
    "head cut off from servers and coordinator": lambda scene: _isolated(scene, coordinator=True),
    "head cut off from its follower": lambda scene: _apart(scene, scene.server("head"), scene.server("follower")),
    "follower cut off from the tail": lambda scene: _apart(scene, scene.server("follower"), scene.server("tail")),
    "head cut off from the coordinator": lambda scene: _apart(scene, scene.server("head"), "coordinator"),
}
QUICK = ("head killed", "clients cut off from the head")
