"""Tenants with partitions: fair shares of promises (Pisces §5, Figures 5 to 8), and what many chains cost.

Eight tenants reserve equal rates over four partitions each, and append more than that: with even keys, and with keys by
Zipf's law, which press on some partitions and leave others. Then four tenants want twice as much as the others, and
then those keep within their reservations. Six tenants with weights of 100, 10 and 1 follow. Traces in the
claim's folder are for `make figures ONLY=pisces`.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random

from quorate.keys import partition_of
from quorate_claims.claim import Conditions
from quorate_harness.figures import Figure
from quorate_harness.fleet import Fleet, fleet
from quorate_harness.quantiles import median
from quorate_harness.steady import Steady, Window

SIZE_BYTES = 1_024
PARTITIONS = 4
TENANTS, RATE_PER_S = 8, 500
WEIGHTS, WEIGHED_RATE_PER_S = (100, 100, 10, 10, 1, 1), 20
PRESSED = 1.2  # appends over the reservation: less popular partitions want less than an even part
PRESSED_TWICE, WITHIN = 2 * PRESSED, 0.7
ADAPTS_S, WINDOW_S, WINDOWS = 24.0, 2.0, 15
KEYS, ZIPF, DRAWN = 1_000, 0.99, 20_000  # keys of a tenant, their skew, and the draws that stand for its load
PARTS = 24  # clients of a tenant, each appending as much, in proportion to its partitions' keys
CHAINS, SCALED_PER_S, SCALED_S, SCALED_ROUNDS = 64, 100_000, 6.0, 5
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass
class Tenant:
    name: str
    rate_per_s: int
    partitions: list[str]
    """One for each client: a partition with more keys is there more often."""
    pressed: float = PRESSED
    """Appends that it offers, over its reservation."""


@dataclass(frozen=True)
class Case:
    """Tenants by their rates, with keys of a skew. `pressed`: offered over reserved, of every second tenant each."""

    kind: str
    rates: list[int]
    skew: float
    pressed: tuple[float, float] = (PRESSED, PRESSED)


def measure(conditions: Conditions) -> list[Figure]:
    with fleet(conditions.folder / "fair", conditions.display, 4) as servers:
        equal, weighed = [RATE_PER_S] * TENANTS, [each * WEIGHED_RATE_PER_S for each in WEIGHTS]
        even = _run(servers, Case("even", equal, 0.0), conditions).mmr
        skewed = _run(servers, Case("skewed", equal, ZIPF), conditions).mmr
        doubled = _run(servers, Case("doubled", equal, ZIPF, (PRESSED, PRESSED_TWICE)), conditions).mmr
        isolated = _run(servers, Case("isolated", equal, ZIPF, (WITHIN, PRESSED_TWICE)), conditions)
        weighted = _run(servers, Case("weighted", weighed, ZIPF), conditions).mmr
    with fleet(conditions.folder / "scaling", conditions.display, 3) as servers:
        scaling = _scaling(servers, conditions)
    about = f"min over max of tenants' appends/s over {ADAPTS_S:.0f} s after the start, each over its reservation"
    eight = f"{TENANTS} tenants × {PARTITIONS} partitions on 4 servers; the paper has {{}} on 8 nodes"
    return [
        Figure("pisces_mmr_even", even, "ratio", 0.99, True, f"{about}; {eight.format('0.99')}"),
        Figure("pisces_mmr_skewed", skewed, "ratio", 0.97, True,
               f"Zipf {ZIPF} over keys; {eight.format('0.91 to 0.97')}"),
        Figure("pisces_mmr_doubled", doubled, "ratio", 0.97, True,
               f"the same, and four tenants want twice as much as the others; {eight.format('0.97 or more')}"),
        Figure("pisces_isolated_p99_ms", max(isolated.p99_ms[::2]), "ms",
               note=f"the worst of four tenants that offer {WITHIN:g} of their reservations, Zipf {ZIPF}; four "
                    f"others offer {PRESSED_TWICE:g} times theirs; medians of windows of {WINDOW_S:.0f} s"),
        Figure("pisces_mmr_weighted", weighted, "ratio", 0.95, True,
               f"weights {':'.join(map(str, dict.fromkeys(WEIGHTS)))}, Zipf {ZIPF} over keys; the paper has 0.56"),
        Figure("partition_scaling_ratio", scaling, "ratio", 1.15,
               note=f"servers' CPU per append: {CHAINS} partitions over one, at {SCALED_PER_S} appends/s of 64 bytes"),
    ]  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """By tenant: throughput over the reservation, and the median of the windows' p99."""

    shares: list[float]
    p99_ms: list[float]

    @property
    def mmr(self) -> float:
        return min(self.shares) / max(self.shares)


def _run(servers: Fleet, case: Case, conditions: Conditions) -> Outcome:
    kind = case.kind
    groups = [
        servers.create_group(f"{kind}-{number}", "in_memory", rate, SIZE_BYTES, partitions=PARTITIONS)
        for number, rate in enumerate(case.rates)
    ]
    tenants = []
    for number, (group, rate) in enumerate(zip(groups, case.rates, strict=True)):
        partitions = servers.partitions(group)
        clients = _clients(f"{kind}-{number}", case.skew)
        offered = case.pressed[number % 2]
        tenants.append(Tenant(f"{kind}-{number}", rate, [partitions[each] for each in clients], offered))
    outcome = _load(servers, kind, tenants, conditions)
    for group in groups:
        servers.customer.delete(f"/v1/groups/{group}")
    listed = " ".join(f"{share:.3f}" for share in outcome.shares)
    conditions.display.line(f"  {kind}: {listed} of the reservations")
    equal = min(map(_share_of_equal_parts, tenants))
    conditions.display.line(f"  With rates that stay equal, one tenant would have no more than {equal:.3f}.")
    return outcome


def _share_of_equal_parts(tenant: Tenant) -> float:
    """The most that the tenant could append, over its reservation, if no rate moved."""
    clients = Counter(tenant.partitions)
    return sum(min(tenant.pressed * count / len(tenant.partitions), 1 / PARTITIONS) for count in clients.values())


def _clients(name: str, skew: float) -> list[int]:
    """The partition of each client. With keys of equal weight each partition has as many."""
    if skew == 0:
        return [number % PARTITIONS for number in range(PARTS)]
    weights = [1 / rank**skew for rank in range(1, KEYS + 1)]
    ranks = Random(name).choices(range(1, KEYS + 1), weights, k=DRAWN)
    drawn = Counter(partition_of(f"{name}-{rank}", PARTITIONS) for rank in ranks)
    counts = {number: max(1, round(PARTS * drawn[number] / drawn.total())) for number in range(PARTITIONS)}
    return [number for number, count in counts.items() for _ in range(count)]


def _load(servers: Fleet, kind: str, tenants: list[Tenant], conditions: Conditions) -> Outcome:
    """The outcome once rates have adapted. All windows go to the trace."""
    adapts = round(ADAPTS_S / WINDOW_S)
    measured = WINDOWS // 3 if conditions.quick else WINDOWS
    rows = []
    with ExitStack() as stack:
        loads = []
        for tenant in tenants:
            rate = round(tenant.rate_per_s * tenant.pressed)
            # A second's worth waits: more would pass its deadline in the queue, and its work would count for nobody.
            outstanding = str(max(tenant.rate_per_s, PARTS))
            flags = ("--size", str(SIZE_BYTES), "--rate", str(rate), "--outstanding-max", outstanding)
            loads.append(stack.enter_context(Steady(servers, tenant.name, tenant.partitions, *flags)))
        begun = time.monotonic()
        for load in loads:
            load.mark("window")
        for _ in range(adapts + measured):
            time.sleep(WINDOW_S)
            rows.append((time.monotonic() - begun, [load.mark("window") for load in loads]))
    trace = [_traced(at_s, windows, tenants) for at_s, windows in rows]
    (conditions.folder / f"{kind}.json").write_text(
        json.dumps({"pressed": [t.pressed for t in tenants], "rows": trace})
    )
    counted = [windows for _, windows in rows[adapts:]]
    own = [[windows[number] for windows in counted] for number in range(len(tenants))]
    return Outcome(
        [_share(windows, tenant) for windows, tenant in zip(own, tenants, strict=True)],
        [median([window.p99_us / 1e3 for window in windows]) for windows in own],
    )


def _share(windows: list[Window], tenant: Tenant) -> float:
    took_s = sum(window.ended_us - window.began_us for window in windows) / 1e6
    return sum(window.acked for window in windows) / took_s / tenant.rate_per_s


def _traced(at_s: float, windows: list[Window], tenants: list[Tenant]) -> dict[str, object]:
    """All tenants in order: throughput over the reservation, and milliseconds."""
    return {
        "at_s": round(at_s, 2),
        "shares": [round(_share([window], tenant), 4) for window, tenant in zip(windows, tenants, strict=True)],
        "p50_ms": [window.p50_us / 1e3 for window in windows],
        "p99_ms": [window.p99_us / 1e3 for window in windows],
    }


def _scaling(servers: Fleet, conditions: Conditions) -> float:
    """The ratio of the servers' CPU per append, medians of rounds that alternate."""
    sla = {"size": 64, "retention_bytes": 1 << 28}
    one = servers.create_group("one", "in_memory", SCALED_PER_S, **sla)
    many = servers.create_group("many", "in_memory", SCALED_PER_S, **sla, partitions=CHAINS)
    costs: dict[str, list[float]] = {"one": [], "many": []}
    for _ in range(2 if conditions.quick else SCALED_ROUNDS):
        for name, partitions in (("one", [one]), ("many", servers.partitions(many))):
            costs[name].append(_cpu_us(servers, name, partitions))
    ratios = [wide / narrow for wide, narrow in zip(costs["many"], costs["one"], strict=True)]
    each = f"{median(costs['one']):.2f} µs an append with one chain, {median(costs['many']):.2f} µs with {CHAINS}"
    conditions.display.line(f"  CPU: {each}")
    return median(ratios)


def _cpu_us(servers: Fleet, name: str, partitions: list[str]) -> float:
    with Steady(servers, f"scaling-{name}", partitions, "--size", "64", "--rate", str(SCALED_PER_S)) as load:
        time.sleep(1)
        load.mark("warm")
        before = sum(map(_cpu_s, servers.pids()))
        time.sleep(SCALED_S)
        window = load.mark("measured")
        used_s = sum(map(_cpu_s, servers.pids())) - before
        load.end()
    return used_s / window.acked * 1e6


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S
