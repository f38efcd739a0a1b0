"""Processor time of process trees and of the machine, from /proc."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class ProcessorTime:
    """Seconds used up to now: by the servers, by the client, by everything on the machine and by its host."""

    servers_s: float
    client_s: float
    machine_s: float

    @classmethod
    def now(cls, servers: Iterable[int], client: int | None) -> ProcessorTime:
        return cls(
            sum(_of_process(pid) for pid in servers),
            _of_process(client) if client is not None else 0.0,
            _of_machine(),
        )

    def since(self, before: ProcessorTime) -> ProcessorTime:
        return ProcessorTime(
            self.servers_s - before.servers_s, self.client_s - before.client_s, self.machine_s - before.machine_s
        )


def _of_process(pid: int) -> float:
    """User plus system seconds of one process, all threads."""
    stat = Path(f"/proc/{pid}/stat").read_text()
    # The name, in brackets, may contain anything.
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def tree_s(pid: int) -> float:
    """User plus system seconds of a process, its children, and those of its children that have ended."""
    while True:
        try:
            children_s = sum(_of_process(child) for child in _children(pid))
        except FileNotFoundError:
            continue  # a child ended meanwhile, and its parent has its time now
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return children_s + sum(int(field) for field in stat[11:15]) / TICKS_PER_S


def _children(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += [int(child) for child in (task / "children").read_text().split()]
    return found


def _of_machine() -> float:
    return machine_ticks(Path("/proc/stat").read_text()) / TICKS_PER_S


def machine_ticks(stat: str) -> int:
    """All cores together, from `/proc/stat`. Includes the time that the host of a virtual machine took from it
    (`steal`): steal disturbs a window as another process does."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = (
        int(field) for field in stat.splitlines()[0].split()[1:9]
    )
    return user + nice + system + irq + softirq + steal
