"""Filo's Figure 7 on real processes: three tenants on three servers, minutes compressed to seconds.

Scarcity is real: all three servers share one core, and an SLA is a part of their throughput on it, measured just
before. So with limiters off a tenant that floods takes another's SLA. A phase measures that, too: without it the run
would show nothing.

First, limiters are off, and on again. Then servers share what is idle: C uses a tenth of its SLA, B wants more, A wants
more too, C comes back. Two controls follow: nobody wants more than its SLA, between C's returns; and the same as above
with limiters off, at the end. Each phase is judged by the clients' samples.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from quorate_harness.fleet import Fleet, fleet
from quorate_harness.steady import Steady, Window
from quorate_local.display import Display
from quorate_local.options import ServerResources
from quorate_papers import profiles
from quorate_papers.seen import (
    BACK_PART,
    BRIEF,
    CALM,
    CALM_PART,
    CONTROL,
    FLOODED,
    IDLE_PART,
    INTERVAL_S,
    PACED,
    TENANTS,
    WINDOW_S,
    Return,
    Sample,
    Seen,
    back_s,
    burst_part,
)

BATCH = 16  # for all tenants, as a full batch of the cost profile: smaller ones cost more, and are charged more
# Part of the servers' throughput in such batches with thousands outstanding. Tenants at their SLAs have fewer, so that
# flushes of the servers are smaller and an append costs more. With a fifth for each, C fell short of its SLA.
SLA_PART = 0.15
PEAK_S = 2.0
SIZE_BYTES = 1_024
RETURN_WINDOW_S = 0.05
RETURN_CLOSELY_S = 1.0
PHASE_S = 4.0
SETTLE_S = 3.0  # six intervals: burst capacity has been agreed on, and again
RETURNS = 5
# Returns in short cycles, at the end. An owner that comes back grants nothing for four intervals, and then grants have
# to be agreed on. So when C comes back, burst capacity has just been granted from its share.
BRIEF_RETURNS = 15
BRIEF_S, BRIEF_IDLE_S = 1.0, SETTLE_S + INTERVAL_S
CALM_S = 3.0
CALM_AFTER = 5  # short returns; and after each of the others
RUN_S = 240  # about, with starting and stopping servers
# Appends that tenants have under way at most. A tenant at its SLA has enough for a disk that takes 20 ms: at 128 it
# fell short when it took 10. Tenants that want more have so many more outstanding that they cost others something when
# nobody holds them back: there is something to protect from.
OUTSTANDING, MORE_OUTSTANDING, FLOOD_OUTSTANDING = 512, 2_048, 6_144
FLOOD = ("--outstanding", str(FLOOD_OUTSTANDING))
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
WANTS_MORE = ("--outstanding", str(MORE_OUTSTANDING), "--batch-entries-max", str(BATCH))


def run(folder: Path, display: Display) -> Seen:
    watch = Watch(time.time())
    watch.seen.load_average = os.getloadavg()[0]
    cores = os.sched_getaffinity(0)
    try:
        with _servers(folder / "limiters", display, BEYOND_REACH, share="off") as servers:
            with display.step("what the servers do on one core"):
                _scarce(servers, cores)
                # The file that this stack was started with; the next one is, too.
                profile = profiles.read(servers.stack.options.profile_file())
                watch.seen.profile = profile.about()
                watch.seen.peak_per_s = _peak(servers)
                watch.seen.sla_per_s = round(watch.seen.peak_per_s * SLA_PART)
            with display.step(f"limiters off, and on: an SLA is {watch.seen.sla_per_s:,} appends/s"):
                _limiters(servers, watch)
        with (
            _servers(folder / "sharing", display, _promised(watch.seen.sla_per_s, profile), share="idle") as servers,
            display.step("granting what C does not use as burst capacity, and reclaiming it"),
        ):
            _scarce(servers, cores)
            _bursting(servers, watch)
    finally:
        os.sched_setaffinity(0, cores)
    return watch.seen


def _scarce(servers: Fleet, cores: set[int]) -> None:
    """All servers on one core; the loads on the others, if there are others."""
    first = min(cores)
    for pid in servers.pids():
        for thread in Path(f"/proc/{pid}/task").iterdir():
            os.sched_setaffinity(int(thread.name), {first})
    os.sched_setaffinity(0, cores - {first} or cores)


def _peak(servers: Fleet) -> float:
    """Appends/s of two tenants that want all there is, limiters off."""
    groups = {name: servers.create_group(name, "persistent", 1_000, SIZE_BYTES) for name in ("X", "Y")}
    servers.wait_whole(*groups.values())
    _toggle(servers)
    with ExitStack() as stack:
        loads = [stack.enter_context(_load(servers, groups, name, *WANTS_MORE)) for name in groups]
        time.sleep(PEAK_S / 2)
        for load in loads:
            load.mark("peak")
        time.sleep(PEAK_S)
        peak = sum(load.mark("done").acked_per_s for load in loads)
    _toggle(servers)
    for group in groups.values():
        servers.delete_group(group)
    return peak


class Watch:
    """Loads, observed window by window."""

    def __init__(self, began: float) -> None:
        self.began = began
        self.seen = Seen()
        self.loads: dict[str, Steady] = {}

    def window(self, phase: str, seconds: float = WINDOW_S) -> dict[str, Window]:
        """Samples of each load since the last call, so many seconds ago."""
        time.sleep(seconds)
        windows = {tenant: load.mark(phase) for tenant, load in self.loads.items()}
        for tenant, one in windows.items():
            began_s, ended_s = (at / 1e6 - self.began for at in (one.began_us, one.ended_us))
            self.seen.samples.append(Sample(tenant, phase, began_s, ended_s, one.acked_per_s, one.p99_us))
        return windows

    def phase(self, name: str, seconds: float = PHASE_S, between: Callable[[], None] | None = None) -> None:
        """The first samples, while it settles, get the name and a `+`. `between`: done before the rest."""
        for settles in (True, False):
            if not settles and between is not None:
                between()
            self.spell(name + "+" if settles else name, SETTLE_S if settles else seconds)

    def spell(self, name: str, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.window(name)


def _promised(sla_per_s: int, profile: profiles.Profile) -> ServerResources:
    """Storage for three SLAs and no more: burst capacity comes from C's reservation."""
    sla = {"durability": "persistent", "replication_degree": 3, "request_size_bytes": SIZE_BYTES}
    operations = profile.operations(sla)
    promised = len(TENANTS) * sla_per_s * operations / profile.safety_factor
    # A thousandth more, or the last of three would not fit for rounding.
    return ServerResources(cpu_cores=64.0, network_bytes_per_s=10**11, storage_io_per_s=round(promised * 1.001))


BEYOND_REACH = ServerResources(cpu_cores=64.0, network_bytes_per_s=10**11, storage_io_per_s=10**8)


def _servers(folder: Path, display: Display, resources: ServerResources, share: str) -> Any:
    env = {
        "QUORATE_SHARE": share,
        "QUORATE_SHARE_INTERVAL_MS": str(round(INTERVAL_S * 1_000)),
        "QUORATE_MEASURE_ISOLATION": "true",
    }
    return fleet(folder, display, 3, server_env=env, server_resources=resources)


def _groups(servers: Fleet, tenants: tuple[str, ...], sla_per_s: int) -> dict[str, str]:
    groups = {name: servers.create_group(name, "persistent", sla_per_s, SIZE_BYTES) for name in tenants}
    servers.wait_whole(*groups.values())
    return groups


def _load(servers: Fleet, groups: dict[str, str], tenant: str, *flags: str) -> Steady:
    return Steady(servers, f"{tenant}-{time.monotonic_ns()}", [groups[tenant]], "--size", str(SIZE_BYTES), *flags)


def _rate(watch: Watch, part: float = 1.0) -> tuple[str, ...]:
    return (
        "--rate",
        str(watch.seen.sla_per_s * part),
        "--burst",
        str(BATCH),
        "--outstanding-max",
        str(OUTSTANDING),
    )


def _limiters(servers: Fleet, watch: Watch) -> None:
    """Latencies of an open loop count from when an append was due. C misses appends while limiters are off, and could
    make up for them only beyond its SLA, which limiters forbid. The same client would owe all of them, and be as late,
    for as long as it appends at its SLA. So C is judged by a client that begins with the judged part."""
    groups = _groups(servers, ("B", "C"), watch.seen.sla_per_s)
    with ExitStack() as stack:

        def load(tenant: str, *flags: str) -> None:
            if tenant in watch.loads:
                watch.loads.pop(tenant).stop()
            watch.loads[tenant] = stack.enter_context(_load(servers, groups, tenant, *flags))

        def restart_victim() -> None:
            load("C", *_rate(watch))

        _toggle(servers)
        for name in groups:
            load(name, *_rate(watch))
        watch.phase("both at their SLA, limiters off", between=restart_victim)
        load("B", *FLOOD)
        watch.phase("B floods, limiters off", between=restart_victim)
        _toggle(servers)
        switched = time.time() - watch.began
        _charged(watch, servers, FLOODED, restart_victim)
        load("B", *FLOOD, "--pace")
        _charged(watch, servers, PACED, restart_victim)
    after = [sample for sample in watch.seen.samples if sample.tenant == "C" and sample.began_s >= switched]
    watch.seen.victim_back_s = back_s(after, watch.seen.sla_per_s, PHASE_S) - switched
    watch.loads = {}


def _charged(watch: Watch, servers: Fleet, phase: str, between: Callable[[], None]) -> None:
    """A phase of which is kept what servers used for an append."""
    before_s = 0.0

    def begin() -> None:
        nonlocal before_s
        between()
        before_s = _cpu_s(servers)

    watch.phase(phase, between=begin)
    used_s = _cpu_s(servers) - before_s
    samples = [sample for sample in watch.seen.samples if sample.phase == phase]
    acked = sum(sample.acked_per_s * (sample.ended_s - sample.began_s) for sample in samples)
    watch.seen.cpu_s_per_m[phase] = used_s * 1e6 / max(acked, 1.0)


def _cpu_s(servers: Fleet) -> float:
    """Processor time of all their threads so far, including those that have ended."""
    return sum(cpu_ticks((Path("/proc") / str(pid) / "stat").read_text()) for pid in servers.pids()) / TICKS_PER_S


def cpu_ticks(stat: str) -> int:
    """In user and kernel mode, from a process's `stat`. Its second field, a name in brackets, may hold anything."""
    fields = stat.rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def _toggle(servers: Fleet) -> None:
    for pid in servers.pids():
        os.kill(pid, signal.SIGUSR1)


def _bursting(servers: Fleet, watch: Watch) -> None:
    groups = _groups(servers, TENANTS, watch.seen.sla_per_s)
    with ExitStack() as stack:

        def load(tenant: str, *flags: str) -> None:
            if tenant in watch.loads:
                watch.loads.pop(tenant).stop()
            watch.loads[tenant] = stack.enter_context(_load(servers, groups, tenant, *flags))

        def idle(*wanting: str) -> None:
            for tenant in wanting:
                load(tenant, *WANTS_MORE)
            load("C", *_rate(watch, IDLE_PART))

        def calm(after: str) -> None:
            for tenant in TENANTS:
                load(tenant, *_rate(watch, CALM_PART))
            watch.spell(f"before the control, {after}", INTERVAL_S)  # loads began one after another
            watch.spell(f"{CALM}, {after}", CALM_S)
            idle("A", "B")

        load("A", *_rate(watch, CALM_PART))
        idle("B")
        watch.phase("C idles, B wants more")
        load("A", *WANTS_MORE)
        watch.phase("C idles, A and B want more")
        for number in range(1, RETURNS + 1):
            _return(watch, f"C is back, {number}", PHASE_S, lambda: load("C", *_rate(watch)))
            calm(f"{number}")
            watch.phase(f"C idles again, {number}", 1.0)
        for number in range(1, BRIEF_RETURNS + 1):
            _return(watch, f"{BRIEF}: back {number}", BRIEF_S, lambda: load("C", *_rate(watch)))
            if number % CALM_AFTER == 0:
                calm(f"brief {number}")
            else:
                load("C", *_rate(watch, IDLE_PART))
            watch.phase(f"{BRIEF}: idles {number}", BRIEF_IDLE_S - SETTLE_S)
        # The control: nobody is held back, and C wants its SLA.
        load("C", *_rate(watch))
        _toggle(servers)
        watch.phase(CONTROL)
    watch.loads = {}


def _return(watch: Watch, phase: str, seconds: float, load: Callable[[], None]) -> None:
    """C appends at its SLA from now on, when its load has attached. Lasts `seconds`, or longer until C has its SLA and
    burst capacity is reclaimed."""
    burst = burst_part(watch.seen)
    load()
    began: float | None = None
    owner: float | None = None
    taken: float | None = None
    start = time.monotonic()
    while (elapsed_s := time.monotonic() - start) < (PHASE_S if None in (owner, taken) else seconds):
        windows = watch.window(phase, RETURN_WINDOW_S if elapsed_s < RETURN_CLOSELY_S else WINDOW_S)
        began = began if began is not None else windows["C"].began_us / 1e6
        ended = max(one.ended_us for one in windows.values()) / 1e6
        if owner is None and windows["C"].acked_per_s >= BACK_PART * watch.seen.sla_per_s:
            owner = ended - began
        total = sum(one.acked_per_s for one in windows.values())
        if taken is None and total <= len(TENANTS) * watch.seen.sla_per_s * (2 - BACK_PART):
            taken = ended - began
    owner, taken = (PHASE_S if back is None else back for back in (owner, taken))
    watch.seen.returns.append(Return(owner, taken, burst))
