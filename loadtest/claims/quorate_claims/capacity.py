"""The capacity of a server that changes under load, as the server estimates it (Pulsar §4.3, §6.2).

A busy process takes more and less of the server's core, and then its disk is made narrower and wider. Tenants whose
reservations are more than the server can do keep it saturated. The real capacity of a phase is what all tenants had
committed in it, by their logs, in tokens of the advertised costs. Then tenants with small reservations may use what is
spare, beyond what admission promises, and another tenant's entries tell whether its guarantee held.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import quorate
from quorate_claims.claim import Conditions
from quorate_claims.driving import DEADLINE_S, Driver, ended, start
from quorate_harness import hog, throttle
from quorate_harness.figures import Figure
from quorate_harness.fleet import Fleet, MeasurementFailed, fleet
from quorate_harness.quantiles import median

PHASE_S, PHASES = 24.0, 5
INTERVAL_S = 1.0  # the server's, of its estimates
SETTLED_AFTER = 8  # intervals that a phase has to be found out in
POLL_S = 0.2
AVERAGED_S = 4.0  # estimate and capacity are compared over so long
NEAR = 0.05
TENANTS = 4
HOG_TIMES = (5, 12)  # in turn
DISK_BYTES_PER_S = (1 << 20, 384 << 10)
SEGMENT_BYTES = 512 << 20  # none is prepared meanwhile, which would take its part of the disk
WINDOW_S, WINDOWS = 5.0, 12  # a guarantee holds in a window, or not
LATE_MS = 50.0  # for one in a hundred, as the SLA has it (`docs/reference/sla.md`)
OWNER_PER_S, OWNER_RESERVED_PER_S = 8_000, 10_000
CORE = 1
ESTIMATING = {"QUORATE_SHARE": "idle", "QUORATE_ESTIMATE_CAPACITY": "raise"}


@dataclass
class Phase:
    """Estimates in units of the resource, with seconds since the phase began; entries of all tenants likewise."""

    estimates: list[tuple[float, float]] = field(default_factory=list)
    entries: list[tuple[float, int]] = field(default_factory=list)

    def served(self, units_per_entry: float, begin: float, end: float) -> float | None:
        """Capacity in units, from the entries that were committed in these seconds; None at the end of the phase."""
        within = [(at, count) for at, count in self.entries if begin <= at <= end]
        if len(within) < 2 or within[-1][0] - within[0][0] < (end - begin) / 2:
            return None
        (first, before), (last, after) = within[0], within[-1]
        return (after - before) / (last - first) * units_per_entry

    def errors(self, units_per_entry: float) -> list[tuple[float, float]]:
        """(seconds, error) of the mean estimate in a window, beside what was served in it: that varies, too."""
        found = []
        for at, _ in self.estimates:
            served = self.served(units_per_entry, at, at + AVERAGED_S)
            if served:
                then = [estimate for when, estimate in self.estimates if at <= when <= at + AVERAGED_S]
                found.append((at, abs(sum(then) / len(then) / served - 1)))
        return found

    def settles(self, units_per_entry: float) -> float:
        """Intervals from the change until the estimate is near the capacity."""
        near = [at for at, error in self.errors(units_per_entry) if error <= NEAR]
        return (near[0] if near else PHASE_S) / INTERVAL_S

    def error(self, units_per_entry: float) -> float:
        late = [error for at, error in self.errors(units_per_entry) if at >= SETTLED_AFTER * INTERVAL_S]
        if not late:
            raise MeasurementFailed("a phase was too short")
        return median(late)


def measure(conditions: Conditions) -> list[Figure]:
    reason = hog.missing() or throttle.missing(conditions.folder.parent)
    if reason is not None:
        raise MeasurementFailed(reason)
    with _on_core(0):
        return [*_of_cpu(conditions), *_of_disk(conditions), *_of_guarantees(conditions)]


def _of_cpu(conditions: Conditions) -> list[Figure]:
    taken = hog.Hog(f"capacity-{os.getpid()}", CORE)
    try:
        env = {**ESTIMATING, "QUORATE_CPU": "4"}
        with fleet(conditions.folder / "cpu", conditions.display, 1, server_env=env) as servers:
            taken.beside(servers.pid("s1"))
            tenants = [Tenant.admit(servers, 300_000, 256, "in_memory") for _ in range(TENANTS)]
            changes = [lambda times=times: taken.take(times) for times in _alternating(conditions, HOG_TIMES)]
            with _load(servers, tenants, len(changes), ["--outstanding", "2048", "--batch-entries-max", "2"]):
                phases = _phases(servers, tenants, changes, "cpu")
            return _figures(conditions, "cpu", tenants[0].tokens(0) / 1e9, phases, "a busy process on its core")
    finally:
        taken.remove()


def _of_disk(conditions: Conditions) -> list[Figure]:
    folder = conditions.folder / "disk"
    try:
        env = {**ESTIMATING, "QUORATE_JOURNAL_SEGMENT_BYTES": str(SEGMENT_BYTES)}
        with fleet(folder, conditions.display, 1, server_env=env) as servers:
            disk, pid = throttle.Throttle(folder), servers.pid("s1")
            _wait_quiet(servers, pid)
            tenants = [Tenant.admit(servers, 400, 4_096, "persistent") for _ in range(TENANTS)]
            changes = [
                lambda per_s=per_s: disk.narrow(pid, per_s) for per_s in _alternating(conditions, DISK_BYTES_PER_S)
            ]
            with _load(servers, tenants, len(changes), ["--outstanding", "2"]):
                phases = _phases(servers, tenants, changes, "storage_io")
            disk.lift()
            return _figures(conditions, "disk", tenants[0].tokens(2) / 1e3, phases, "a narrower disk")
    finally:
        throttle.remove(folder)


def _of_guarantees(conditions: Conditions) -> list[Figure]:
    """A tenant within its reservation, beside others that take all that the estimate lets them have."""
    taken = hog.Hog(f"guarantees-{os.getpid()}", CORE)
    windows = 2 if conditions.quick else WINDOWS
    missed = 0
    p99s: list[float] = []
    try:
        env = {**ESTIMATING, "QUORATE_CPU": "4"}
        with fleet(conditions.folder / "guarantees", conditions.display, 1, server_env=env) as servers:
            taken.beside(servers.pid("s1"))
            owner = Tenant.admit(servers, OWNER_RESERVED_PER_S, 256, "in_memory")
            greedy = [Tenant.admit(servers, 1_000, 256, "in_memory") for _ in range(TENANTS)]
            seconds = windows * (WINDOW_S + 2.0)
            with _load(servers, greedy, seconds / PHASE_S, ["--outstanding", "1024", "--batch-entries-max", "2"]):
                for window in range(windows):
                    taken.take(HOG_TIMES[0] if window // 3 % 2 else 0)  # it comes and goes
                    said = ended(*owner.drive(servers, WINDOW_S, ["--rate", str(OWNER_PER_S)]))
                    is_missed = said["p99_us"] > LATE_MS * 1e3 or bool(said["refused"]) or bool(said["unknown"])
                    missed += is_missed
                    p99s.append(said["p99_us"] / 1e3)
                    conditions.display.line(
                        f"  the owner's p99 {p99s[-1]:.1f} ms, {_estimate(servers, 'cpu'):.2f} cores"
                    )
    finally:
        taken.remove()
    note = f"windows of {WINDOW_S:.0f} s with any refused, or more than 1 % later than {LATE_MS:.0f} ms, of {windows}; "
    note += f"worst p99 {max(p99s):.1f} ms"
    return [Figure("capacity_probe_sla_violation_ratio", missed / windows, "ratio", 0.0, note=note)]


def _wait_quiet(servers: Fleet, pid: int) -> None:
    """Until the server has prepared its journal's segments."""
    io = Path(f"/proc/{pid}/io")
    before = ""

    def is_quiet() -> bool:
        nonlocal before
        time.sleep(2.0)
        now = next(line for line in io.read_text().splitlines() if line.startswith("write_bytes"))
        was, before = before, now
        return now == was

    servers.wait(is_quiet, "the server to prepare its journal", DEADLINE_S)


def _figures(conditions: Conditions, of: str, units_per_entry: float, phases: list[Phase], by: str) -> list[Figure]:
    settled, errors = [], []
    for phase in phases[1:]:  # the first begins with the load
        settled.append(phase.settles(units_per_entry))
        errors.append(phase.error(units_per_entry))
        served = phase.served(units_per_entry, SETTLED_AFTER * INTERVAL_S, PHASE_S)
        conditions.display.line(f"  {served:,.3g} of {of}: {settled[-1]:.1f} intervals, error {errors[-1]:.1%}")
    _keep_trace(conditions.folder / f"{of}.json", phases, units_per_entry)
    note = f"worst of {len(settled)} changes by {by}; median {{:.3g}}"
    return [
        Figure(f"capacity_settles_intervals_{of}", max(settled), "intervals", 8, note=note.format(median(settled))),
        Figure(f"capacity_error_{of}", max(errors), "ratio", NEAR, note=note.format(median(errors))),
    ]


def _keep_trace(file: Path, phases: list[Phase], units_per_entry: float) -> None:
    """For a plot: (seconds, estimate) and (seconds, served units a second) over all phases."""
    estimates, served = [], []
    for number, phase in enumerate(phases):
        since = number * PHASE_S
        estimates += [(round(since + at, 2), estimate) for at, estimate in phase.estimates]
        seconds = [entry for n, entry in enumerate(phase.entries) if n % 5 == 0]
        for (first, before), (last, after) in itertools.pairwise(seconds):
            served.append((round(since + last, 2), (after - before) / (last - first) * units_per_entry))
    file.write_text(json.dumps({"estimates": estimates, "served": served}))


def _alternating(conditions: Conditions, values: tuple[int, int]) -> list[int]:
    return [values[n % 2] for n in range(2 if conditions.quick else PHASES)]


def _phases(servers: Fleet, tenants: list[Tenant], changes: list[Any], resource: str) -> list[Phase]:
    return asyncio.run(_watch(servers, tenants, changes, resource))


async def _watch(servers: Fleet, tenants: list[Tenant], changes: list[Any], resource: str) -> list[Phase]:
    clients = [await quorate.connect(tenant.handle.read_text()) for tenant in tenants]
    phases = []
    try:
        for change in changes:
            change()
            phase, begun = Phase(), time.monotonic()
            phases.append(phase)
            while (at := time.monotonic() - begun) < PHASE_S:
                phase.estimates.append((at, await asyncio.to_thread(_estimate, servers, resource)))
                statuses = await asyncio.gather(*(client.status(timeout=10) for client in clients))
                entries = sum(status.commit_offset for status in statuses)
                phase.entries.append((time.monotonic() - begun, entries))
                await asyncio.sleep(POLL_S)
    finally:
        for client in clients:
            await client.close(drain=False)
    return phases


def _estimate(servers: Fleet, resource: str) -> float:
    """In units of the resource."""
    (server,) = servers.servers().values()
    estimated = (server["estimated"] or {}).get(resource)
    if estimated is None:
        raise MeasurementFailed("the server estimates nothing")
    return float(estimated["capacity"])


@dataclass(frozen=True)
class Tenant:
    group: str
    handle: Path
    size: int
    charges: dict[str, Any]

    @classmethod
    def admit(cls, servers: Fleet, rate_per_s: int, size: int, durability: str) -> Tenant:
        sla = {
            "durability": durability,
            "replication_degree": 1,
            "request_size_bytes": size,
            "retention_bytes": 64 << 20,
        }
        group = servers.admit_group(str(uuid4()), rate_per_s=rate_per_s, **sla)
        servers.wait_active({group})
        path = servers.folder / f"{group}.json"
        path.write_text(json.dumps(servers.signed_handle(group)))
        return cls(group, path, size, servers.group(group)["charges"])

    def tokens(self, resource: int) -> float:
        """The advertised cost of one entry in a full batch."""
        cost = self.charges["cost"]
        milli = cost["fixed_milli"][resource] + cost["per_byte_milli"][resource] * self.size
        return float(milli) / 1e3

    def drive(self, servers: Fleet, seconds: float, flags: list[str]) -> Driver:
        of = ["--size", str(self.size), "--seconds", str(seconds), "--warmup", "1", *flags]
        return start(servers, self.handle, "append", of)


@contextmanager
def _load(servers: Fleet, tenants: list[Tenant], phases: float, flags: list[str]) -> Iterator[None]:
    """All tenants append as fast as they are answered, for as long as so many phases take at most."""
    seconds = phases * PHASE_S + 10.0
    drivers = [tenant.drive(servers, seconds, flags) for tenant in tenants]
    try:
        time.sleep(2.0)
        yield
    finally:
        for process, _ in drivers:
            process.terminate()
            process.communicate(timeout=DEADLINE_S)


@contextmanager
def _on_core(core: int) -> Iterator[None]:
    """This process and those it starts run elsewhere than the server."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
