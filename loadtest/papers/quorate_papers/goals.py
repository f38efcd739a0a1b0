"""The figures of Figure 7, each with its goal."""

from __future__ import annotations

from collections.abc import Iterator

from quorate_harness.figures import Figure
from quorate_papers.seen import (
    BURST_PART_MIN,
    CONTROL,
    FLOODED,
    INTERVAL_S,
    PACED,
    WITHIN_PART,
    Count,
    Seen,
    calm,
    control,
    short_returns,
    short_tenants,
    violations,
)


def _pacing(seen: Seen) -> Iterator[Figure]:
    """Benefit of a flooding client that holds back its appends beyond its rate, instead of being throttled."""
    used = seen.cpu_s_per_m
    note = "servers' processor time an append, B floods with limiters on: its client paces it over it does not"
    yield Figure("fig7_pacing_cpu_ratio", used[PACED] / used[FLOODED], "ratio", note=note)
    latency = seen.p99_us("C", PACED) / seen.p99_us("C", FLOODED)
    yield Figure("fig7_pacing_victim_p99_ratio", latency, "ratio", note="C's p99, the same")
    rate = seen.rate("B", PACED) / seen.rate("B", FLOODED)
    note = "B's appends/s, the same: what it is acknowledged when its client waits"
    yield Figure("fig7_pacing_rate_ratio", rate, "ratio", WITHIN_PART, True, note)


def sharing(seen: Seen) -> Iterator[Figure]:
    """Figure 7, of one run: each phase's assertion is a goal."""
    off, on = "B floods, limiters off", FLOODED
    idle, both = "C idles, B wants more", "C idles, A and B want more"
    sla = seen.sla_per_s
    note = "C's appends/s over its SLA while B floods, limiters off: below, or there is nothing to protect from"
    yield Figure("fig7_unprotected_rate_ratio", seen.rate("C", off) / sla, "ratio", WITHIN_PART, note=note)
    note = "C's appends/s over its SLA at the end, limiters off: what the phases before would be without them"
    yield Figure("fig7_control_rate_ratio", seen.rate("C", CONTROL) / sla, "ratio", WITHIN_PART, note=note)
    calm_us = seen.p99_us("C", "both at their SLA, limiters off")
    beyond, harm = seen.rate("B", off) / sla, seen.p99_us("C", off) / calm_us
    note = "B's appends/s over its SLA, limiters off"
    yield Figure("fig7_flood_ratio", beyond, "ratio", 1.5, True, note)
    note = "C's p99 while B floods over C's before, limiters off: there is something to protect from"
    yield Figure("fig7_victim_harm_ratio", harm, "ratio", 1.5, True, note)
    yield Figure("fig7_flood_limited_ratio", seen.rate("B", on) / sla, "ratio", 1.05, note="limiters on")
    yield Figure("fig7_victim_rate_ratio", seen.rate("C", on) / sla, "ratio", 0.95, True, "limiters on")
    healed = seen.p99_us("C", on) / seen.p99_us("C", off)
    yield Figure("fig7_victim_p99_ratio", healed, "ratio", 0.7, note="C's p99, limiters on over limiters off")
    note = "from limiters on until C has its SLA over an interval; goal: one interval"
    yield Figure("fig7_victim_back_ms", 1_000 * seen.victim_back_s, "ms", 1_000 * INTERVAL_S, note=note)
    yield from _pacing(seen)
    # Room for C to grow unnoticed: a quarter of its usage and a twentieth of its SLA stay of what it leaves.
    spare = sla - seen.rate("C", idle)
    note = "B's appends/s above its SLA over what C leaves; C is left room to grow"
    yield Figure("fig7_lent_ratio", (seen.rate("B", idle) - sla) / spare, "ratio", 0.85, True, note)
    extra = [seen.rate(tenant, both) - sla for tenant in ("A", "B")]
    note = "of A and B, the one that got less over the one that got more, above their SLAs"
    yield Figure("fig7_lent_fairness_ratio", min(extra) / max(*extra, 1.0), "ratio", 0.9, True, note)
    worst = f"worst of {len(seen.returns)} returns"
    note = f"{worst}: from C's first append at its SLA until a window of 50 ms at its SLA"
    yield Figure("fig7_owner_back_ms", 1_000 * max(one.owner_back_s for one in seen.returns), "ms", 200, note=note)
    note = f"{worst}: until all three together are within the servers' commitments"
    yield Figure("fig7_taken_back_ms", 1_000 * max(one.taken_back_s for one in seen.returns), "ms", 200, note=note)
    for name, count in counts(seen).items():
        yield Figure(name, count.ratio, "ratio", COUNTED_GOALS.get(name), note=COUNTED[name])


def counts(seen: Seen) -> dict[str, Count]:
    """Figures that are shares of few: how many, among how many."""
    return {
        "fig7_control_violation_ratio": control(seen),
        "fig7_calm_violation_ratio": calm(seen),
        "idle_sla_violation_ratio": violations(seen),
        "idle_returns_short_ratio": short_returns(seen),
        "idle_tenants_short_ratio": short_tenants(seen),
    }


COUNTED_GOALS = {"idle_sla_violation_ratio": 0.01}
COUNTED = {
    "fig7_control_violation_ratio": "intervals of tenants with limiters on and nothing shared: what the machine alone "
    f"does. Below {WITHIN_PART:.0%} of what the tenant asks for within its SLA is a violation, here and below",
    "fig7_calm_violation_ratio": "intervals of tenants between the returns, while nobody wants more than its SLA",
    "idle_sla_violation_ratio": f"intervals of tenants, {1_000 * INTERVAL_S:.0f} ms each, while all that is idle was "
    "shared",
    "idle_returns_short_ratio": f"returns of an owner of whose SLA {BURST_PART_MIN:.0%} or more was burst capacity of "
    "others, after which it had its SLA in no window within an interval",
    "idle_tenants_short_ratio": "tenants that had one such interval or more while all that is idle was shared; paper, "
    "which counts tenants: > 0.95",
}
