"""The context of a fault: the fleet, the seed's choices, and a log of the actions with their times."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from quorate_chaos.coordinators import Unready
from quorate_chaos.fleet import DISK, DURABILITY, MEMORY, Fleet, Shape
from quorate_chaos.network import COORDINATOR
from quorate_local.options import REPOSITORY

FOLDER = REPOSITORY / "build" / "chaos"  # all runs, each in a folder of its own
FALSE_ALARM = "false alarm"
CATCH_UP_S = 12.0  # longest wait of a fault for a whole fleet before it continues regardless


@dataclass(frozen=True)
class Event:
    """`at_ns` is CLOCK_MONOTONIC, as in the history."""

    at_ns: int
    text: str


@dataclass
class Trial:
    fleet: Fleet
    random: random.Random
    tell: Callable[[str], None]
    events: list[Event] = field(default_factory=list)
    has_filled: set[str] = field(default_factory=set)
    has_stepped: set[str] = field(default_factory=set)
    crashes: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)

    def say(self, text: str) -> None:
        self.events.append(Event(time.monotonic_ns(), text))
        self.tell(text)

    def pause(self, least_s: float, most_s: float) -> None:
        time.sleep(self.random.uniform(least_s, most_s))

    def group(self) -> str:
        return self.random.choice(sorted(DURABILITY))

    def head(self, group: str) -> str:
        return self.fleet.chain(group)[0]

    def tail(self, group: str) -> str:
        return self.fleet.chain(group)[-1]

    def middle(self, group: str) -> str:
        """A replica that is neither head nor tail, if there is one."""
        chain = self.fleet.chain(group)
        return self.random.choice(chain[1:-1] or chain[-1:])

    def member(self, group: str) -> str:
        return self.random.choice(self.fleet.chain(group))

    def running(self) -> list[str]:
        dead = self.fleet.dead()
        return [name for name in self.fleet.names if name not in dead] or self.fleet.names

    def leader(self) -> str:
        """The coordinator that leads, once one does."""
        until = time.monotonic() + CATCH_UP_S
        while True:
            try:
                return self.fleet.coordinators.leader()
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)

    def start_coordinators(self, *names: str) -> None:
        self.say(f"start {', '.join(names)}")
        self.fleet.start_coordinators(list(names))

    def kill(self, *names: str, why: str) -> None:
        if not names:
            return
        self.fleet.kill(*names)
        self.say(f"kill -9 {', '.join(names)} ({why})")

    def expect_replaced(self, group: str, name: str, within_s: float) -> None:
        """Wait until it has left the group's chain; it is a finding if it stays."""
        begun = time.monotonic()
        while time.monotonic() < begun + within_s:
            # Without a view of the coordinator the wait continues.
            with suppress(OSError, Unready):
                if name not in self.fleet.chain(group):
                    self.say(f"{name} is out of the chain of {group} after {time.monotonic() - begun:.1f} s")
                    return
            time.sleep(0.1)
        self.findings.append(f"{name} is slow and was not replaced in {group} within {within_s:.0f} s")
        self.say(self.findings[-1])

    def expect_in_place(self, group: str, names: list[str]) -> None:
        """It is a finding if one of these has left the group's chain."""
        with suppress(OSError, Unready):
            left = sorted(set(names) - set(self.fleet.chain(group)))
            if left:
                self.findings.append(f"{', '.join(left)} left the chain of {group}, and nothing was wrong there")
                self.say(self.findings[-1])

    def expect_quiet(self, seen: int) -> None:
        """It is a finding if the coordinator told of anything since its event `seen`: each is a false alarm."""
        for event in self.fleet.events_after(seen):
            self.findings.append(f"{FALSE_ALARM}: {event['kind']}: {event['message']}")
            self.say(self.findings[-1])

    def heal(self) -> None:
        """Take every fault back. Damaged disks stay damaged."""
        fleet = self.fleet
        fleet.network.unblock()
        fleet.free_disks()
        for name in sorted(fleet.stopped()):
            fleet.resume(name)
        for name in sorted(self.has_filled):
            fleet.filler(name).unlink(missing_ok=True)
        self.has_filled.clear()
        for name in sorted(self.has_stepped):
            fleet.set_clock(name, 0)
        self.has_stepped.clear()
        self.notice_crashes()
        dead = fleet.dead()
        fleet.start_coordinators([name for name in dead if fleet.is_coordinator(name)])
        servers = [name for name in dead if not fleet.is_coordinator(name)]
        self.say("heal" + (f": start {', '.join(dead)}" if dead else ""))
        fleet.start_servers(servers)

    def notice_crashes(self) -> None:
        """A process that ended by itself is a finding, even with a sound history."""
        for name, code in self.fleet.crashed().items():
            crash = f"{name} ended by itself with code {code}"
            if crash not in self.crashes:
                self.crashes.append(crash)
                self.say(crash)


@dataclass(frozen=True)
class Fault:
    """`act` does it; `Trial.heal` takes back its rest. `may_lose`: groups that may end lost. `more_s`: extra time of
    the fault and the load. `gap_ms_max`: longest time of a group without an acknowledgement, if that shows whether the
    fault was handled. `missing`: the reason why this machine cannot do it."""

    name: str
    summary: str
    act: Callable[[Trial], Any]
    shape: Shape = field(default_factory=Shape)
    may_lose: frozenset[str] = frozenset()
    degrees: tuple[int, ...] = (3, 3, 3, 2, 5)
    more_s: float = 0.0
    gap_ms_max: int | None = None
    missing: Callable[[], str | None] = lambda: None


__all__ = ["CATCH_UP_S", "COORDINATOR", "DISK", "FOLDER", "MEMORY", "Event", "Fault", "Shape", "Trial"]
