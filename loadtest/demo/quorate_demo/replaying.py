"""The middle of the demo: two writers at work, one server killed, everything watched."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quorate_demo.program import READBACK, REPLAY, Program
from quorate_demo.trace import Schedule
from quorate_harness.customer import Customer
from quorate_local import Stack
from quorate_local.display import Display

START_DELAY_S = 2.0  # the writers' interpreters start and connect before the first entry is due
DRAIN_TIMEOUT_S = 60.0  # after the last entry is due
READBACK_TIMEOUT_S = 120.0
WATCH_S = 0.1


@dataclass
class Tenant:
    """A customer with one group, written in one language and read back in the other."""

    customer: Customer
    group: dict[str, Any]
    durability: str
    writer: str
    reader: str
    results: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.customer.organization

    def head(self) -> str:
        """Address of the group's head at this moment."""
        replicas = self.customer.placement(self.group["id"])["replicas"]
        return str(next(replica["address"] for replica in replicas if replica["role"] in ("head", "sole")))

    def config(self, day: int, schedule: Schedule) -> dict[str, Any]:
        """The configuration that the programs in `program.py` read, without the time to begin."""
        return {
            "api_url": self.customer.api_url,
            "api_key": self.customer.api_key,
            "group_id": self.group["id"],
            "day": day,
            "org": self.name,
            "first_minute": schedule.first_minute,
            "requests": schedule.requests,
            "seconds": schedule.seconds,
        }


class Replaying:
    """Runs the replay and keeps what was seen: the kill, the memory, the processes that died."""

    def __init__(self, stack: Stack, tenants: list[Tenant], day: int, schedule: Schedule, folder: Path) -> None:
        self.killed_server = ""
        self.kill_us = 0  # since the replay's begin
        self.heads_killed: set[str] = set()  # names of tenants
        self.memory_bytes: dict[str, int] = {}
        self.died: set[str] = set()
        self._stack = stack
        self._tenants = tenants
        self._day = day
        self._schedule = schedule
        self._folder = folder

    def run(self, display: Display) -> None:
        """Writes; fills each tenant's `results` with what its writer reported."""
        begin_s = time.monotonic() + START_DELAY_S
        writers = {
            tenant.name: Program(
                f"writer-{tenant.name}",
                REPLAY[tenant.writer],
                {**tenant.config(self._day, self._schedule), "begin_monotonic_s": begin_s},
                self._folder / f"writer-{tenant.name}.log",
            )
            for tenant in self._tenants
        }
        try:
            self._watch(writers, begin_s, display)
            for tenant in self._tenants:
                tenant.results.update(writers[tenant.name].result(DRAIN_TIMEOUT_S))
        finally:
            for writer in writers.values():
                writer.stop()

    def read_back(self, display: Display) -> None:
        """Reads both logs at once; adds `runs` and `corrupted` to each tenant's `results`."""
        readers = {
            tenant.name: Program(
                f"reader-{tenant.name}",
                READBACK[tenant.reader],
                tenant.config(self._day, self._schedule),
                self._folder / f"reader-{tenant.name}.log",
            )
            for tenant in self._tenants
        }
        try:
            while any(reader.running() for reader in readers.values()):
                state = [f"{name} {reader.progress.get('read', 0):,}" for name, reader in readers.items()]
                display.progress(f"  read back   {'   '.join(state)}")
                self.look_at_servers()
                time.sleep(WATCH_S)
            for tenant in self._tenants:
                tenant.results.update(readers[tenant.name].result(READBACK_TIMEOUT_S))
        finally:
            for reader in readers.values():
                reader.stop()

    def look_at_servers(self) -> None:
        """Notes how much memory each server has held, and which processes are dead that should not be."""
        processes = self._stack.processes()
        for name in self._stack.options.server_names():
            memory = processes[name].identity.memory_bytes()
            if memory:
                self.memory_bytes[name] = max(self.memory_bytes.get(name, 0), memory[1])
        self.died |= set(self._stack.dead()) - {self.killed_server}

    def _watch(self, writers: dict[str, Program], begin_s: float, display: Display) -> None:
        seconds = self._schedule.seconds
        acked_before: dict[str, tuple[float, int]] = {}
        while True:
            elapsed_s = time.monotonic() - begin_s
            if elapsed_s > seconds + DRAIN_TIMEOUT_S or not any(writer.running() for writer in writers.values()):
                return
            if elapsed_s > seconds / 2 and not self.killed_server:
                self._kill_a_head(begin_s, display)
            self.look_at_servers()
            display.progress(self._progress(writers, elapsed_s, acked_before))
            time.sleep(WATCH_S)

    def _kill_a_head(self, begin_s: float, display: Display) -> None:
        """The head of the first tenant's group, which may be the other's too."""
        heads = {tenant.name: tenant.head() for tenant in self._tenants}
        victim = heads[self._tenants[0].name]
        self.killed_server = self._stack.servers_by_address()[victim]
        self.look_at_servers()
        self.kill_us = int((time.monotonic() - begin_s) * 1e6)
        self._stack.kill_server(self.killed_server)
        self.heads_killed = {name for name, head in heads.items() if head == victim}
        display.line(f"  kill -9 {self.killed_server}, the head of {' and of '.join(sorted(self.heads_killed))}")

    def _progress(self, writers: dict[str, Program], elapsed_s: float, before: dict[str, tuple[float, int]]) -> str:
        share = min(1.0, max(0.0, elapsed_s / self._schedule.seconds))
        minute = self._schedule.first_minute + int(share * (len(self._schedule.requests) - 1))
        states = []
        for name, writer in writers.items():
            acked = int(writer.progress.get("acked", 0))
            then_s, then = before.setdefault(name, (elapsed_s, acked))
            rate = (acked - then) / (elapsed_s - then_s) if elapsed_s > then_s else 0.0
            if elapsed_s - then_s > 1:
                before[name] = (elapsed_s, acked)
            states.append(f"{name} {acked:>9,} {rate:>7,.0f}/s")
        killed = f"   {self.killed_server} dead" if self.killed_server else ""
        return f"  {minute // 60:02d}:{minute % 60:02d}   {'   '.join(states)}{killed}"
