"""Filo's Figure 7 on real processes: three tenants on three servers, minutes compressed to seconds.

What is scarce is real: all three servers share one core, and an SLA is a part of what they were just seen to do on it.
So with limiters off a tenant that floods takes another's SLA. That is measured, too: without it nothing would be shown.

Limiters off and on again; then, on servers that share what is idle: C uses a tenth of its SLA, B wants more, A wants
more too, C comes back; and at the end, as a control, the same with limiters off. Each phase is judged from what clients
saw.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from quorate_local.display import Display
from quorate_local.options import ServerResources
from quorate_paper.instances import profile
from quorate_scenarios.claims.fleet import Fleet, fleet
from quorate_scenarios.claims.steady import Steady, Window

TENANTS = ("A", "B", "C")
BATCH = 16  # of all tenants, as a full batch of the cost profile: smaller ones cost more, and are charged more
# Of what the servers do in such batches with a thousand outstanding. Tenants at their SLAs have fewer, so that rounds
# of the servers are smaller and an append costs more: with a fifth for each, C fell short of its SLA.
SLA_PART = 0.15
PEAK_S = 2.0
SIZE_BYTES = 1_024
IDLE_PART = 0.1
CALM_PART = 0.95  # A before it wants more: at its whole SLA, any hiccup would have it held back, and want more
WINDOW_S = 0.1
RETURN_WINDOW_S = 0.05
RETURN_CLOSELY_S = 1.0
PHASE_S = 4.0
SETTLE_S = 3.0  # six intervals: what is lent has been agreed on, and again
INTERVAL_S = 0.5
RETURNS = 5
BACK_PART = 0.95  # of its SLA: a window of 100 ms holds 200 requests in batches
WITHIN_PART = 0.9  # of its SLA, over an interval: below is a violation
CONTROL = "control: limiters off, A and B want more, C its SLA"
FLOOD = ("--outstanding", "2048")
FLOODED = "B floods, limiters on"
PACED = "B floods and its client paces it"
OWN_OUTSTANDING = 128  # of a tenant at its SLA: its client has no more under way, as clients do
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
WANTS_MORE = ("--outstanding", "512", "--batch-entries-max", str(BATCH))


@dataclass(frozen=True)
class Sample:
    """One tenant in one window; seconds since the figure began."""

    tenant: str
    phase: str
    began_s: float
    ended_s: float
    acked_per_s: float
    p99_us: int


@dataclass
class Seen:
    samples: list[Sample] = field(default_factory=list)
    # Of each return of C: seconds until it had its SLA, and until all tenants were within what servers promise.
    owner_back_s: list[float] = field(default_factory=list)
    taken_back_s: list[float] = field(default_factory=list)
    # B beyond its SLA, since limiters are on.
    victim_back_s: float = 0.0
    # What the servers did with two tenants that wanted all, and of it the SLA of each.
    peak_per_s: float = 0.0
    sla_per_s: int = 2_000
    # Of the machine, when the figure began: processes that wanted a core.
    load_average: float = 0.0
    # What servers used for an append, by phase; seconds of processor time a million.
    cpu_s_per_m: dict[str, float] = field(default_factory=dict)

    def rate(self, tenant: str, phase: str) -> float:
        """Over the phase's samples of the tenant, appends/s."""
        return _mean(self.of(tenant, phase))

    def p99_us(self, tenant: str, phase: str) -> float:
        # A window in which nothing was acknowledged has no latency: it waited at least as long as the window.
        latencies = sorted(sample.p99_us or round(WINDOW_S * 1e6) for sample in self.of(tenant, phase))
        return float(latencies[len(latencies) // 2])

    def of(self, tenant: str, phase: str) -> list[Sample]:
        return [sample for sample in self.samples if (sample.tenant, sample.phase) == (tenant, phase)]

    def rows(self) -> list[dict[str, Any]]:
        return [asdict(sample) for sample in self.samples]


def run(folder: Path, display: Display) -> Seen:
    watch = Watch(time.time())
    watch.seen.load_average = os.getloadavg()[0]
    cores = os.sched_getaffinity(0)
    try:
        with _servers(folder / "limiters", display, BEYOND_REACH, share="off") as servers:
            with display.step("what the servers do on one core"):
                _scarce(servers, cores)
                watch.seen.peak_per_s = _peak(servers)
                watch.seen.sla_per_s = round(watch.seen.peak_per_s * SLA_PART)
            with display.step(f"limiters off, and on: an SLA is {watch.seen.sla_per_s:,} appends/s"):
                _limiters(servers, watch)
        with (
            _servers(folder / "sharing", display, _promised(watch.seen.sla_per_s), share="idle") as servers,
            display.step("lending what C does not use, and taking it back"),
        ):
            _scarce(servers, cores)
            _lending(servers, watch)
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
        """Of each load what it did since the last call, so many seconds ago."""
        time.sleep(seconds)
        windows = {tenant: load.mark(phase) for tenant, load in self.loads.items()}
        for tenant, one in windows.items():
            began_s, ended_s = (at / 1e6 - self.began for at in (one.began_us, one.ended_us))
            self.seen.samples.append(Sample(tenant, phase, began_s, ended_s, one.acked_per_s, one.p99_us))
        return windows

    def phase(self, name: str, seconds: float = PHASE_S, between: Callable[[], None] | None = None) -> None:
        """What comes first, while it settles, is kept under the name and a `+`. `between`: done before the rest."""
        for settles in (True, False):
            if not settles and between is not None:
                between()
            until = time.monotonic() + (SETTLE_S if settles else seconds)
            while time.monotonic() < until:
                self.window(name + "+" if settles else name)


def _promised(sla_per_s: int) -> ServerResources:
    """Storage for three SLAs and no more: what is lent is C's."""
    promised = len(TENANTS) * sla_per_s * _operations() / float(profile()["safety_factor"])
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


def _operations() -> int:
    storage = profile()["storage"]
    return int(-(-SIZE_BYTES // storage["io_bytes"]) * storage["writes"])


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
        str(OWN_OUTSTANDING),
    )


def _limiters(servers: Fleet, watch: Watch) -> None:
    """Latencies of an open loop count from when an append was due. What C could not append while limiters were off it
    could make up for only beyond its SLA, which limiters forbid: the same client would owe all of that, and be as late,
    for as long as it appends at its SLA. So what is judged of C is a client that begins with the judged part."""
    groups = _groups(servers, ("B", "C"), watch.seen.sla_per_s)
    with ExitStack() as stack:

        def load(tenant: str, *flags: str) -> None:
            if tenant in watch.loads:
                watch.loads.pop(tenant).stop()
            watch.loads[tenant] = stack.enter_context(_load(servers, groups, tenant, *flags))

        def begin_anew() -> None:
            load("C", *_rate(watch))

        _toggle(servers)
        for name in groups:
            load(name, *_rate(watch))
        watch.phase("both at their SLA, limiters off", between=begin_anew)
        load("B", *FLOOD)
        watch.phase("B floods, limiters off", between=begin_anew)
        _toggle(servers)
        switched = time.time() - watch.began
        _charged(watch, servers, FLOODED, begin_anew)
        load("B", *FLOOD, "--pace")
        _charged(watch, servers, PACED, begin_anew)
    after = [sample for sample in watch.seen.samples if sample.tenant == "C" and sample.began_s >= switched]
    watch.seen.victim_back_s = _back_s(after, watch.seen.sla_per_s) - switched
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
    """Of all their threads so far, those that have ended, too."""
    return sum(cpu_ticks((Path("/proc") / str(pid) / "stat").read_text()) for pid in servers.pids()) / TICKS_PER_S


def cpu_ticks(stat: str) -> int:
    """In user and kernel mode, from a process's `stat`. Its second field, a name in brackets, may hold anything."""
    fields = stat.rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def _back_s(samples: list[Sample], sla_per_s: float) -> float:
    """When the first interval begins over which the tenant had its SLA."""
    for first in range(len(samples)):
        stretch = next(_intervals(samples[first:]), [])
        if stretch and _mean(stretch) >= BACK_PART * sla_per_s:
            return stretch[0].began_s
    return samples[-1].ended_s + PHASE_S


def _mean(samples: list[Sample]) -> float:
    time_s = sum(sample.ended_s - sample.began_s for sample in samples)
    return sum(sample.acked_per_s * (sample.ended_s - sample.began_s) for sample in samples) / time_s


def _toggle(servers: Fleet) -> None:
    for pid in servers.pids():
        os.kill(pid, signal.SIGUSR1)


def _lending(servers: Fleet, watch: Watch) -> None:
    groups = _groups(servers, TENANTS, watch.seen.sla_per_s)
    with ExitStack() as stack:

        def load(tenant: str, *flags: str) -> None:
            if tenant in watch.loads:
                watch.loads.pop(tenant).stop()
            watch.loads[tenant] = stack.enter_context(_load(servers, groups, tenant, *flags))

        for tenant in TENANTS:
            load(tenant, *_rate(watch, IDLE_PART if tenant == "C" else CALM_PART))
        load("B", *WANTS_MORE)
        watch.phase("C idles, B wants more")
        load("A", *WANTS_MORE)
        watch.phase("C idles, A and B want more")
        for number in range(RETURNS):
            load("C", *_rate(watch))
            _return(watch, f"C is back, {number + 1}")
            load("C", *_rate(watch, IDLE_PART))
            if number + 1 < RETURNS:
                watch.phase(f"C idles again, {number + 1}", 1.0)
        # The control: nobody is held back, and C wants its SLA.
        load("C", *_rate(watch))
        _toggle(servers)
        watch.phase(CONTROL)
    watch.loads = {}


def _return(watch: Watch, phase: str) -> None:
    """C appends at its SLA from now on, when its load has attached."""
    began: float | None = None
    owner: float | None = None
    taken: float | None = None
    start = time.monotonic()
    while time.monotonic() < start + PHASE_S:
        is_close = time.monotonic() < start + RETURN_CLOSELY_S
        windows = watch.window(phase, RETURN_WINDOW_S if is_close else WINDOW_S)
        began = began if began is not None else windows["C"].began_us / 1e6
        ended = max(one.ended_us for one in windows.values()) / 1e6
        if owner is None and windows["C"].acked_per_s >= BACK_PART * watch.seen.sla_per_s:
            owner = ended - began
        total = sum(one.acked_per_s for one in windows.values())
        if taken is None and total <= len(TENANTS) * watch.seen.sla_per_s * (2 - BACK_PART):
            taken = ended - began
    watch.seen.owner_back_s.append(owner if owner is not None else PHASE_S)
    watch.seen.taken_back_s.append(taken if taken is not None else PHASE_S)


def violations(seen: Seen, phases: str = "C ") -> tuple[int, int]:
    """(violations, chances): of each tenant and interval, whether the tenant got less than what it asked for within
    its SLA. `phases`: how their names begin; by default those in which what is idle was shared."""
    shared = [sample for sample in seen.samples if sample.phase.startswith(phases)]
    found = chances = 0
    for tenant in TENANTS:
        for chunk in _intervals([sample for sample in shared if sample.tenant == tenant]):
            asks = _asks(tenant, chunk[0].phase)
            chances += 1
            found += _mean(chunk) < WITHIN_PART * asks * seen.sla_per_s
    return found, chances


def _asks(tenant: str, phase: str) -> float:
    if tenant == "C" and "idles" in phase:
        return IDLE_PART
    return CALM_PART if tenant == "A" and phase.startswith("C idles, B") else 1.0


def _intervals(samples: list[Sample]) -> Iterator[list[Sample]]:
    """Samples that follow one another, in one phase, as long as an interval."""
    chunk: list[Sample] = []
    for sample in samples:
        if chunk and sample.phase != chunk[0].phase:
            chunk = []
        chunk.append(sample)
        if chunk[-1].ended_s - chunk[0].began_s >= INTERVAL_S:
            yield chunk
            chunk = []
