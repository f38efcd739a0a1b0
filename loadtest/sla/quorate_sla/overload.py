"""Customers who ask for more than they reserved, in every way that a client has, earn no credit by it.

Many groups are attacked at once: their minutes make an hour of judged time within a few minutes. Two things show that
the figure is not blind. The attacked groups must have been throttled. And groups that stay within their rate must see
a bad minute once their servers are stopped for some seconds.

Minutes in which a group of the same durability within its rate missed the same clause are the machine's, and are told.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quorate_harness.customer import Customer
from quorate_harness.figures import Figure
from quorate_harness.fleet import MeasurementFailed
from quorate_local import Stack
from quorate_local.components import binary
from quorate_local.display import Display

RATE_PER_S = 10  # all drivers and servers share a small machine
SIZE_BYTES = 1_024
RETENTION_BYTES = 32 << 20  # so that all groups find memory
DEGREE = 3
GROUPS_OF_EACH = 1
ATTACK_MINUTES = 6
STOPPED_S = 5
JUDGED_TIMEOUT_S = 240
POLL_S = 5


@dataclass(frozen=True)
class Habit:
    """A way to load a group. `rate_per_s` and `burst` in entries; `is_overload`: it asks for more than was reserved."""

    name: str
    rate_per_s: int
    size_bytes: int = SIZE_BYTES
    burst: int = 1
    connections: int = 1
    is_overload: bool = True


HABITS = [
    Habit("within", RATE_PER_S * 4 // 5, is_overload=False),
    Habit("a_fifth_more", RATE_PER_S * 6 // 5),
    Habit("twice", RATE_PER_S * 2),
    Habit("ten_times", RATE_PER_S * 10),
    Habit("twenty_seconds_at_once", RATE_PER_S, burst=20 * RATE_PER_S),
    Habit("larger_entries", RATE_PER_S, size_bytes=4 * SIZE_BYTES),
    Habit("four_clients", RATE_PER_S * 2, connections=4),
]


@dataclass(frozen=True)
class Attacked:
    habit: Habit
    durability: str
    group_id: str
    handle: Path


@dataclass(frozen=True)
class Judged:
    """A group's report after the attack. `throttled_per_s`: the greatest of its minutes."""

    group: Attacked
    minutes: int
    bad: frozenset[tuple[str, str]]  # minute and clause
    credit_percent: int
    throttled_per_s: float
    incidents: tuple[str, ...]


def measure(stack: Stack, customer: Customer, folder: Path, display: Display, quick: bool) -> list[Figure]:
    """The figures; raises `MeasurementFailed` if the attack was none, or the judge is blind."""
    folder.mkdir(parents=True, exist_ok=True)
    minutes = 1 if quick else ATTACK_MINUTES
    groups = _buy(customer, folder, 1 if quick else GROUPS_OF_EACH)
    display.line(f"  {len(groups)} groups of {RATE_PER_S}/s, loaded in {len(HABITS)} ways for {minutes} min")
    begun = time.monotonic()
    with _load(stack, groups, (minutes + 1) * 60) as drivers:
        for minute in range(minutes + 1):
            _wait_until(begun + 60 * (minute + 1), drivers)
            display.line(f"    {minute + 1} of {minutes + 1} min")
    judged = [_judged(customer, group, minutes) for group in groups]
    _check_attack(judged)
    for each in judged:
        if each.bad or each.credit_percent:
            told = "; ".join(each.incidents)
            display.line(f"    {each.group.habit.name}, {each.group.durability}: {len(each.bad)} bad: {told}")
    seen = _stop_servers(stack, customer, groups, display)
    return figures(judged, seen)


def figures(judged: list[Judged], outage_minutes_seen: int) -> list[Figure]:
    overloaded = [each for each in judged if each.group.habit.is_overload]
    minutes = sum(each.minutes for each in overloaded)
    own = {each.group.group_id: each.bad - _of_machine(judged, each.group.durability) for each in overloaded}
    bad = sum(len(found) for found in own.values())
    others = sum(len(each.bad) for each in overloaded) - bad
    credit = sum(each.credit_percent for each in overloaded if own[each.group.group_id])
    note = f"{len(overloaded)} groups, {minutes} judged minutes, each group loaded beyond its reservation; "
    note += f"{others} misses that groups within their rate had too"
    return [
        Figure("sla_overload_credit", credit, "percent of a fee, over all groups", 0, note=note),
        Figure("sla_overload_bad_minutes", bad, "minutes", 0, note=f"of {minutes}"),
        Figure("sla_overload_judged_minutes", minutes, "minutes", 60, more_is_better=True),
        Figure(
            "sla_outage_minutes_seen", outage_minutes_seen, "minutes", 1, more_is_better=True,
            note=f"of a group within its rate whose servers were stopped for {STOPPED_S} s",
        ),
    ]  # fmt: skip


def _of_machine(judged: list[Judged], durability: str) -> frozenset[tuple[str, str]]:
    """Misses of groups within their rate."""
    within = [each.bad for each in judged if not each.group.habit.is_overload and each.group.durability == durability]
    return frozenset().union(*within)


def _buy(customer: Customer, folder: Path, of_each: int) -> list[Attacked]:
    groups = []
    for habit in HABITS:
        for durability in ("in_memory", "persistent"):
            for number in range(of_each):
                name = f"{habit.name}-{durability}-{number}".replace("_", "-")
                sla = {"durability": durability, "replication_degree": DEGREE}
                sla |= {"request_size_bytes": SIZE_BYTES, "rate_per_s": RATE_PER_S, "retention_bytes": RETENTION_BYTES}
                group = customer.create_group(name, sla)
                handle = folder / f"{name}.json"
                handle.write_text(json.dumps(customer.get(f"/v1/groups/{group['id']}/handle")))
                groups.append(Attacked(habit, durability, group["id"], handle))
    return groups


@contextmanager
def _load(stack: Stack, groups: list[Attacked], seconds: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """A driver for each habit, without pacing. They are ended at the end."""
    drivers = []
    try:
        for habit in HABITS:
            handles = [part for group in groups if group.habit is habit for part in ("--handle", str(group.handle))]
            count = len(handles) // 2
            command = [binary(stack.options, "quorate-load"), "append", *handles]
            command += ["--size", str(habit.size_bytes), "--rate", str(habit.rate_per_s * count)]
            command += ["--burst", str(habit.burst), "--connections", str(habit.connections)]
            command += ["--seconds", str(seconds), "--warmup", "0", "--timeout", "10"]
            log = (groups[0].handle.parent / f"{habit.name}.log").open("wb")
            drivers.append(subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True))
        yield drivers
    finally:
        for driver in drivers:
            driver.terminate()
        for driver in drivers:
            driver.wait(20)


def _wait_until(at: float, drivers: list[subprocess.Popen[bytes]]) -> None:
    while time.monotonic() < at:
        time.sleep(0.5)
    if ended := [driver.args for driver in drivers if driver.poll() not in (None, 0)]:
        raise MeasurementFailed(f"a load driver ended by itself: {ended[0]!r}")


def _judged(customer: Customer, group: Attacked, minutes: int) -> Judged:
    """Waits until so many whole minutes of the group are judged."""
    deadline = time.monotonic() + JUDGED_TIMEOUT_S
    while True:
        report = customer.sla_report(group.group_id)
        if report["minutes_counted"] > minutes:
            break
        if time.monotonic() > deadline:
            raise MeasurementFailed(f"{report['minutes_counted']} minutes are judged after {JUDGED_TIMEOUT_S} s")
        time.sleep(POLL_S)
    metrics = customer.get(f"/v1/groups/{group.group_id}/metrics", {"minutes": "10"})["minutes"]
    return Judged(
        group,
        report["minutes_counted"],
        _bad(customer, group),
        report["credit_percent"],
        max((minute["throttled_per_s"] for minute in metrics), default=0.0),
        tuple(f"{incident['clause']}: {incident['reason']}" for incident in report["incidents"]),
    )


def _bad(customer: Customer, group: Attacked) -> frozenset[tuple[str, str]]:
    """An attack has fewer minutes than a page."""
    page = customer.get(f"/v1/groups/{group.group_id}/sla/bad-minutes", {"limit": "200"})
    return frozenset((each["at"], clause) for each in page["items"] for clause in each["missed"])


def _check_attack(judged: list[Judged]) -> None:
    for each in judged:
        throttled = each.throttled_per_s > 0
        if throttled != each.group.habit.is_overload:
            what = "was throttled" if throttled else "was not throttled: this was no attack"
            raise MeasurementFailed(f"{each.group.habit.name} ({each.group.durability}) {what}")


def _stop_servers(stack: Stack, customer: Customer, groups: list[Attacked], display: Display) -> int:
    """Bad minutes of the groups within their rate, once all servers stood still for a while."""
    within = [group for group in groups if not group.habit.is_overload]
    before = sum(_availability(customer, group)["bad_minutes"] for group in within)
    counted = _availability(customer, within[0])["minutes"]
    display.line(f"  stopping all servers for {STOPPED_S} s")
    pids = stack.server_pids()
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(STOPPED_S)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    deadline = time.monotonic() + JUDGED_TIMEOUT_S
    while _availability(customer, within[0])["minutes"] < counted + 3 and time.monotonic() < deadline:
        time.sleep(POLL_S)
    after = sum(_availability(customer, group)["bad_minutes"] for group in within)
    return int(after - before)


def _availability(customer: Customer, group: Attacked) -> dict[str, Any]:
    report = customer.sla_report(group.group_id)
    clause = next(each for each in report["clauses"] if each["clause"] == "availability")
    return {"bad_minutes": clause["bad_minutes"], "minutes": report["minutes_counted"]}
