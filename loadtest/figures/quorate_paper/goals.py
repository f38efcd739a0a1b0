"""The figures that are kept, each with its goal (the paper's, or better)."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

from quorate_local.figures import Figure
from quorate_paper.conservation import Point as Shared
from quorate_paper.conservation import over
from quorate_paper.figure7 import INTERVAL_S, RETURNS, SLA_PER_S, Seen, violations
from quorate_paper.placement import COUNTS, HOWS, ORDERS
from quorate_paper.placement import Point as Placed

MOST = max(COUNTS)


def placement(
    points: list[Placed], kinds: list[dict[str, Any]], optima: list[dict[str, Any]], us_per_replica_10k: float
) -> Iterator[Figure]:
    for how in HOWS:
        last = {point.algorithm: point for point in points if point.how == how and point.applicants == MOST}
        note = f"of the scarce resource, {MOST} applicants; Algorithm 1: {last['filo'].allocated:.3f}; paper: > 0.98"
        yield Figure(f"placement_allocated_ratio_{how}", last["shape"].allocated, "ratio", 0.98, True, note)
    for order in ORDERS:
        rows = [row for row in kinds if row["order"] == order]
        least = min(rows, key=lambda row: row["shape"])
        gain = min(row["shape"] - row["filo"] for row in rows)
        note = f"the least of {len(rows)} kinds ({least['kind']}); Algorithm 1 there {least['filo']:.3f}"
        name = "placement_allocated_ratio_any_kind_" + order.replace(", ", "_").replace(" ", "_")
        yield Figure(name, least["shape"], "ratio", None, True, f"{note}; least gain over it {gain:+.3f}")
    drawn = next(row for row in kinds if row["kind"] == "Filo §6.2" and row["order"] == "online, as drawn")
    note = f"applicants in an order by chance, not the worst one; Algorithm 1: {drawn['filo']:.3f}"
    yield Figure("placement_allocated_ratio_online_as_drawn", drawn["shape"], "ratio", 0.98, True, note)
    proven = sum(row["proven"] for row in optima)
    filo = median(row["offline_filo"] for row in optima)
    note = f"off-line over the solver's bound, median; {proven} of {len(optima)} bounds proven to be reached"
    note += f"; Algorithm 1: {filo:.3f}"
    yield Figure("placement_vs_optimal_ratio", median(row["offline"] for row in optima), "ratio", 0.98, True, note)
    yield Figure("placement_us_per_replica_10k", us_per_replica_10k, "us", 20, note="10 000 servers, 5 failure domains")


def growth(rows: list[dict[str, Any]]) -> Iterator[Figure]:
    """How the speed-up changes from the smallest fleet to the largest, with as many tenants a server."""
    first, last = rows[0], rows[-1]
    for name, algorithm in (("alldrf", "all"), ("leveldrf", "level")):
        low, high = first["speedup"][algorithm], last["speedup"][algorithm]
        fleets = f"{first['servers']} to {last['servers']} servers, {first['tenants']} to {last['tenants']} tenants"
        note = f"{low:,.3g} to {high:,.3g}, {fleets}; paper: grows"
        yield Figure(f"{name}_speedup_growth", high / low, "ratio", 1, True, note)


def bounded(points: list[dict[str, Any]]) -> Iterator[Figure]:
    """What the paper's figures look like when a tenant wants as much again as it reserved."""
    for name, algorithm, said in (("headdrf", "head", "0.70 to 0.75"), ("alldrf", "all", "0.95")):
        values = [row["efficiency"][algorithm] for row in points if row["demand"] == 1]
        note = f"tenants want as much again as they reserved; worst {min(values):.3g}; paper: {said}"
        yield Figure(f"{name}_efficiency_bounded", median(values), "ratio", None, True, note)


def conservation(points: list[Shared]) -> Iterator[Figure]:
    """Medians over all instances."""
    goals: dict[str, tuple[float | None, ...]] = {
        "alldrf": (None, None, None, None),
        "leveldrf": (0.99, 100, 1.05, None),
    }
    paper = {"alldrf": ("0.95", "5×", "close to 1", "150"), "leveldrf": ("–", "–", "–", "–")}
    whats = ("efficiency", "speedup", "fairness_ratio", "messages")
    for name, algorithm in (("alldrf", "all"), ("leveldrf", "level")):
        for what, goal, said in zip(whats, goals[name], paper[name], strict=True):
            values = over(points, algorithm, what)
            unit = "messages" if what == "messages" else "ratio"
            worst = max(values) if what in ("fairness_ratio", "messages") else min(values)
            better = what in ("efficiency", "speedup")
            note = f"worst {worst:.3g}; paper: {said}"
            yield Figure(f"{name}_{what}", median(values), unit, goal, better, note)
    yield Figure("leveldrf_rounds", median(over(points, "level", "rounds")), "rounds", 4, note="of messages")
    speedups = over(points, "cdrf-exact", "speedup")
    yield Figure("cdrf_exact_speedup", median(speedups), "ratio", 50, True, f"worst {min(speedups):.3g}")


def sharing(seen: Seen) -> Iterator[Figure]:
    """Figure 7: each phase's assertion is a goal."""
    off, on = "B floods, limiters off", "B floods, limiters on"
    idle, both = "C idles, B wants more", "C idles, A and B want more"
    calm_us = seen.p99_us("C", "both at their SLA, limiters off")
    beyond, harm = seen.rate("B", off) / SLA_PER_S, seen.p99_us("C", off) / calm_us
    note = "B's appends/s over its SLA, limiters off"
    yield Figure("fig7_flood_ratio", beyond, "ratio", 1.5, True, note)
    note = "C's p99 while B floods over C's before, limiters off: there is something to protect from"
    yield Figure("fig7_victim_harm_ratio", harm, "ratio", 1.5, True, note)
    yield Figure("fig7_flood_limited_ratio", seen.rate("B", on) / SLA_PER_S, "ratio", 1.05, note="limiters on")
    yield Figure("fig7_victim_rate_ratio", seen.rate("C", on) / SLA_PER_S, "ratio", 0.95, True, "limiters on")
    healed = seen.p99_us("C", on) / seen.p99_us("C", off)
    yield Figure("fig7_victim_p99_ratio", healed, "ratio", 0.7, note="C's p99, limiters on over limiters off")
    note = "from limiters on until C has its SLA over an interval; goal: one interval"
    yield Figure("fig7_victim_back_ms", 1_000 * seen.victim_back_s, "ms", 1_000 * INTERVAL_S, note=note)
    # Of what C leaves, a quarter of what it uses and a twentieth of its SLA stay, so that it can grow unnoticed.
    spare = SLA_PER_S - seen.rate("C", idle)
    note = "B's appends/s above its SLA over what C leaves; C is left room to grow"
    yield Figure("fig7_lent_ratio", (seen.rate("B", idle) - SLA_PER_S) / spare, "ratio", 0.85, True, note)
    extra = [seen.rate(tenant, both) - SLA_PER_S for tenant in ("A", "B")]
    note = "of A and B, the one that got less over the one that got more, above their SLAs"
    yield Figure("fig7_lent_fairness_ratio", min(extra) / max(*extra, 1.0), "ratio", 0.9, True, note)
    note = f"worst of {RETURNS}: from C's first append at its SLA until a window of 50 ms at its SLA"
    yield Figure("fig7_owner_back_ms", 1_000 * max(seen.owner_back_s), "ms", 200, note=note)
    note = f"worst of {RETURNS}: until all three together are within what servers promise"
    yield Figure("fig7_taken_back_ms", 1_000 * max(seen.taken_back_s), "ms", 200, note=note)
    found, chances = violations(seen, on)
    note = f"{found} of {chances} intervals of tenants with limiters on and nothing shared: what the machine alone does"
    yield Figure("fig7_control_violation_ratio", found / max(chances, 1), "ratio", note=note)
    found, chances = violations(seen)
    note = f"{found} of {chances} intervals of tenants while all that is idle was shared; paper: > 0.95 of tenants"
    yield Figure("idle_sla_violation_ratio", found / chances, "ratio", 0.01, note=note)
