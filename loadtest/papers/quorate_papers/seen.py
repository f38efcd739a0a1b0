"""Samples of one run of Figure 7, and counts over them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

TENANTS = ("A", "B", "C")
IDLE_PART = 0.1
CALM_PART = 0.95  # demand of a calm tenant: at its whole SLA, any hiccup would have it held back, and want more
WINDOW_S = 0.1
INTERVAL_S = 0.5  # the controller's
BACK_PART = 0.95  # part of its SLA: a window of 100 ms holds 200 requests in batches
WITHIN_PART = 0.9  # part of its SLA, over an interval: below is a violation
BURST_PART_MIN = 0.1  # part of C's SLA: with less burst capacity, its return reclaims nothing from anybody
CONTROL = "control: limiters off, A and B want more, C its SLA"
FLOODED = "B floods, limiters on"
PACED = "B floods and its client paces it"
CALM = "control: nobody wants more"  # the names of such phases begin so: nothing is idle, and nobody bursts
SHARED = "C "  # how the names of phases begin in which what is idle was shared
BRIEF = "C comes and goes"  # how the names of short returns begin


@dataclass(frozen=True)
class Sample:
    """One tenant in one window; seconds since the figure began."""

    tenant: str
    phase: str
    began_s: float
    ended_s: float
    acked_per_s: float
    p99_us: int


@dataclass(frozen=True)
class Return:
    """C's return, in seconds from its first append at its SLA. Each time is until it had its SLA over a window, or
    until all tenants were within the servers' commitments. `lent_part`: usage of A and B beyond their SLAs in the
    interval before, as a part of C's SLA."""

    owner_back_s: float
    taken_back_s: float
    lent_part: float


class Count(NamedTuple):
    found: int
    of: int

    @property
    def ratio(self) -> float:
        """Part found; the worst, 1, where nothing was looked at."""
        return self.found / self.of if self.of else 1.0

    def __str__(self) -> str:
        return f"{self.found} of {self.of}"


@dataclass
class Seen:
    samples: list[Sample] = field(default_factory=list)
    returns: list[Return] = field(default_factory=list)
    # B beyond its SLA, since limiters are on.
    victim_back_s: float = 0.0
    # Throughput of the servers with two tenants that wanted all; and the SLA of each, a part of it.
    peak_per_s: float = 0.0
    sla_per_s: int = 2_000
    # The cost profile that servers charged by, as `Profile.about` gives it.
    profile: dict[str, Any] = field(default_factory=dict)
    # The machine's load when the run began: processes that wanted a core.
    load_average: float = 0.0
    # Servers' cost of an append, by phase; seconds of processor time a million.
    cpu_s_per_m: dict[str, float] = field(default_factory=dict)

    def rate(self, tenant: str, phase: str) -> float:
        """Over the phase's samples of the tenant, appends/s."""
        return mean(self.of(tenant, phase))

    def p99_us(self, tenant: str, phase: str) -> float:
        # A window in which nothing was acknowledged has no latency: it waited at least as long as the window.
        latencies = sorted(sample.p99_us or round(WINDOW_S * 1e6) for sample in self.of(tenant, phase))
        return float(latencies[len(latencies) // 2])

    def of(self, tenant: str, phase: str) -> list[Sample]:
        return [sample for sample in self.samples if (sample.tenant, sample.phase) == (tenant, phase)]

    def document(self) -> dict[str, Any]:
        """For a file that is kept: a sample is a row, and names its phase by its number."""
        phases = list(dict.fromkeys(sample.phase for sample in self.samples))
        rows = [
            [phases.index(one.phase) if key == "phase" else getattr(one, key) for key in COLUMNS]
            for one in self.samples
        ]
        return {**asdict(self), "phases": phases, "columns": list(COLUMNS), "samples": rows}


COLUMNS = tuple(Sample.__dataclass_fields__)


def mean(samples: list[Sample]) -> float:
    """Appends/s over all of their time."""
    time_s = sum(sample.ended_s - sample.began_s for sample in samples)
    return sum(sample.acked_per_s * (sample.ended_s - sample.began_s) for sample in samples) / time_s


def back_s(samples: list[Sample], sla_per_s: float, otherwise_s: float) -> float:
    """Begin of the first interval over which the tenant had its SLA. `otherwise_s`: stands for it, counted from the
    last sample, if there is none."""
    for first in range(len(samples)):
        samples_of_interval = next(intervals(samples[first:]), [])
        if samples_of_interval and mean(samples_of_interval) >= BACK_PART * sla_per_s:
            return samples_of_interval[0].began_s
    return samples[-1].ended_s + otherwise_s


def burst_part(seen: Seen) -> float:
    """Usage of A and B beyond their SLAs in the last interval of the samples so far, as a part of C's SLA."""
    last_s = max((sample.ended_s for sample in seen.samples), default=0.0)
    beyond = 0.0
    for tenant in ("A", "B"):
        late = [one for one in seen.samples if one.tenant == tenant and one.ended_s > last_s - INTERVAL_S]
        beyond += max(0.0, mean(late) - seen.sla_per_s) if late else 0.0
    return beyond / seen.sla_per_s


def violations(seen: Seen, phases: str = SHARED) -> Count:
    """Intervals of tenants in which the tenant got less than it asked for within its SLA. `phases`: how their names
    begin; by default the phases that share idle capacity."""
    by_tenant = _violations(seen, phases).values()
    return Count(sum(one.found for one in by_tenant), sum(one.of for one in by_tenant))


def short_tenants(seen: Seen) -> Count:
    """Tenants that had one violation or more while what is idle was shared: what the paper counts."""
    by_tenant = _violations(seen, SHARED).values()
    return Count(sum(one.found > 0 for one in by_tenant), sum(one.of > 0 for one in by_tenant))


def short_returns(seen: Seen) -> Count:
    """Returns to a reservation that gave burst capacity, after which the owner had its SLA in no window that ended
    within an interval."""
    burst = [one for one in seen.returns if one.lent_part >= BURST_PART_MIN]
    return Count(sum(one.owner_back_s > INTERVAL_S for one in burst), len(burst))


def control(seen: Seen) -> Count:
    """Violations with limiters on and nothing shared: what the machine alone does. By it alone runs are repeated."""
    return violations(seen, FLOODED)


def calm(seen: Seen) -> Count:
    """Violations between the returns, while nobody wants more than its SLA. They show what the machine does meanwhile,
    and capacity that is not reclaimed. So they decide nothing."""
    return violations(seen, CALM)


def _violations(seen: Seen, phases: str) -> dict[str, Count]:
    shared = [sample for sample in seen.samples if sample.phase.startswith(phases)]
    found = {}
    for tenant in TENANTS:
        chunks = list(intervals([sample for sample in shared if sample.tenant == tenant]))
        short = [mean(one) < WITHIN_PART * _asks(tenant, one[0].phase) * seen.sla_per_s for one in chunks]
        found[tenant] = Count(sum(short), len(short))
    return found


def _asks(tenant: str, phase: str) -> float:
    if tenant == "C" and "idles" in phase:
        return IDLE_PART
    is_calm = phase.startswith(CALM) or (tenant == "A" and phase.startswith("C idles, B"))
    return CALM_PART if is_calm else 1.0


def intervals(samples: list[Sample]) -> Iterator[list[Sample]]:
    """Samples that follow one another, in one phase, as long as an interval."""
    chunk: list[Sample] = []
    for sample in samples:
        if chunk and sample.phase != chunk[0].phase:
            chunk = []
        chunk.append(sample)
        if chunk[-1].ended_s - chunk[0].began_s >= INTERVAL_S:
            yield chunk
            chunk = []
