"""The figures that are kept, each with its goal (the paper's, or better)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import log, sqrt
from statistics import fmean, linear_regression, median
from typing import Any

from quorate_local.figures import Figure
from quorate_paper.conservation import EXACT, MORE_ROUNDS, over
from quorate_paper.conservation import Point as Shared
from quorate_paper.placement import COUNTS, HOWS, ORDERS
from quorate_paper.placement import Point as Placed
from quorate_paper.seen import (
    CONTROL,
    FLOODED,
    INTERVAL_S,
    LENT_PART_MIN,
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

MOST = max(COUNTS)


def placement(
    points: list[Placed], kinds: list[dict[str, Any]], optima: list[dict[str, Any]], us_per_replica: dict[int, float]
) -> Iterator[Figure]:
    for how in HOWS:
        last = {point.algorithm: point for point in points if point.how == how and point.applicants == MOST}
        note = f"of the scarce resource, {MOST} applicants; Algorithm 1: {last['filo'].allocated:.3f}; paper: > 0.98"
        yield Figure(f"placement_allocated_ratio_{how}", last["shape"].allocated, "ratio", 0.98, True, note)
        # The bound is all there is: no optimum of instances of this size can be proven.
        note = "of what applicants together want most: the optimum is at most all of it, the ratio to it at least this"
        name = f"placement_vs_bound_ratio_{how}_{MOST}_applicants"
        yield Figure(name, last["shape"].allocated_most_wanted, "ratio", None, True, note)
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
    yield from _beside_optimum(optima)
    for servers, us in us_per_replica.items():
        goal = 20 if servers == max(us_per_replica) else None
        name = (
            f"placement_us_per_replica_{servers // 1_000}k"
            if servers >= 1_000
            else f"placement_us_per_replica_{servers}"
        )
        yield Figure(name, us, "us", goal, note=f"{servers:,} servers, 5 failure domains")
    smallest, largest = min(us_per_replica), max(us_per_replica)
    grown = us_per_replica[largest] / us_per_replica[smallest]
    note = f"{smallest:,} to {largest:,} servers; memory and caches grow, too: nodes looked at are counted in a test"
    yield Figure("placement_us_growth_ratio", grown, "ratio", note=note)


def _beside_optimum(optima: list[dict[str, Any]]) -> Iterator[Figure]:
    """Beside what the solver found, and beside what it proved that nobody can exceed: the same where it finished."""
    proven = [row for row in optima if row["proven"]]
    about = f"{len(proven)} of {len(optima)} optima proven, {optima[0]['servers']} servers"
    for how, name in (("offline", "placement_vs_optimal_ratio"), ("online", "placement_vs_optimal_ratio_online")):
        ratios = [row[how] / row["found"] for row in proven]
        note = f"median over proven optima; worst {min(ratios, default=0):.3f}; {about}"
        if how == "offline":
            note += f"; Algorithm 1: {median([row['offline_filo'] / row['found'] for row in proven] or [0]):.3f}"
        if how == "online":
            note += "; on-line nobody knows who comes later, which the optimum does"
        yield Figure(name, median(ratios or [0.0]), "ratio", 0.98, True, note)
        bounds = [row[how] / row["bound"] for row in optima]
        note = f"median over the solver's bounds, proven to be reached or not; worst {min(bounds):.3f}; {about}"
        yield Figure(name.replace("optimal", "bound"), median(bounds), "ratio", None, True, note)


def growth(rows: list[dict[str, Any]]) -> Iterator[Figure]:
    """How the speed-up grows with the number of tenants, in fleets with as many tenants a server: the exponent b of
    speed-up = a × tenants^b that fits all instances best (least squares of logarithms), less two standard errors. And
    what Level-DRF gives out in the largest fleet, for which there is no goal: the paper has ten servers."""
    fleets = ", ".join(str(row["servers"]) for row in rows)
    for name, algorithm in (("alldrf", "all"), ("leveldrf", "level")):
        instances = [
            (log(tenants), log(value)) for row in rows for tenants, value in row["speedup_by_tenants"][algorithm]
        ]
        exponent, error = fitted(instances)
        seen = ", ".join(f"{row['speedup'][algorithm]:,.3g}" for row in rows)
        is_monotone = min(steps(rows, algorithm)) >= 1
        note = f"at least, with two standard errors off; fitted to {len(instances)} instances: {exponent:.2f}, "
        note += f"twice the tenants, {2**exponent:.2f} times the speed-up; "
        note += f"medians {seen} with {fleets} servers, {'' if is_monotone else 'not '}monotone; paper: grows"
        yield Figure(f"{name}_speedup_growth", exponent - 2 * error, "exponent", 0, True, note)
    last = rows[-1]
    note = f"of what exact C-DRF gives out; median of {last['instances']} instances, "
    note += f"{last['tenants']:g} tenants; worst {last['worst_efficiency']['level']:.3f}"
    name = f"leveldrf_efficiency_{last['servers']}_servers"
    yield Figure(name, last["efficiency"]["level"], "ratio", None, True, note)


def fitted(points: list[tuple[float, float]]) -> tuple[float, float]:
    """Slope of the line through them by least squares, and its standard error."""
    slope, intercept = linear_regression(*zip(*points, strict=True))
    mean = fmean(x for x, _ in points)
    spread = sum((x - mean) ** 2 for x, _ in points)
    left = sum((y - intercept - slope * x) ** 2 for x, y in points)
    return slope, sqrt(left / (len(points) - 2) / spread)


def steps(rows: list[dict[str, Any]], algorithm: str) -> list[float]:
    """By how much the median speed-up grows from each fleet to the next."""
    speedups = [row["speedup"][algorithm] for row in rows]
    return [later / before for before, later in pairwise(speedups)]


def many(row: dict[str, Any]) -> Figure:
    """Two hundredths of an interval of one second: the server has other things to do."""
    tenants = f"{row['tenants_of_a_server']:,} tenants who want more"
    note = f"processor time of the steps of all {row['rounds']} rounds of an interval (what is heard, filled, promised "
    note += f"and told), the busiest of ten servers that each host {tenants}, median of {row['repeat']} runs; "
    note += "not in it: gathering what groups did, writing and reading frames, keeping words, painting anew where what "
    note += f"is free has changed meanwhile; gives out {row['efficiency']:.3f} of what C-DRF does"
    return Figure("level_drf_round_us_10k_tenants", row["time_us"], "us", 20_000, note=note)


def bounded(points: list[dict[str, Any]]) -> Iterator[Figure]:
    """What the paper's figures look like when a tenant wants as much again as it reserved."""
    for name, algorithm, said in (("headdrf", "head", "0.70 to 0.75"), ("alldrf", "all", "0.95")):
        values = [row["efficiency"][algorithm] for row in points if row["demand"] == 1]
        note = f"tenants want as much again as they reserved; worst {min(values):.3g}; paper: {said}"
        yield Figure(f"{name}_efficiency_bounded", median(values), "ratio", None, True, note)


def conservation(points: list[Shared]) -> Iterator[Figure]:
    """The worst number of applicants counts, with the median of its instances: small ones are easy. Fairness is told
    with how much is given out: who gives out nothing is even too."""
    goals: dict[str, tuple[float | None, ...]] = {
        "alldrf": (None, None, None, None),
        "leveldrf": (0.99, 100, 1.05, None),
    }
    paper = {"alldrf": ("0.95", "5×", "close to 1", "150"), "leveldrf": ("–", "–", "–", "–")}
    whats = ("efficiency", "speedup", "fairness_ratio", "messages")
    for name, algorithm in (("alldrf", "all"), ("leveldrf", "level")):
        given = worst_median(points, algorithm, "efficiency", min)[0]
        for what, goal, said in zip(whats, goals[name], paper[name], strict=True):
            worse = max if what in ("fairness_ratio", "messages") else min
            value, count = worst_median(points, algorithm, what, worse)
            instances = over(points, algorithm, what, count)
            unit = "messages" if what == "messages" else "ratio"
            note = f"median of {len(instances)} instances of {count} applicants, the worst number; "
            note += f"worst of all {worse(over(points, algorithm, what)):.3g}; paper: {said}"
            if what == "fairness_ratio":
                note += f"; gives out {given:.3f} of what C-DRF does"
                goal = goal if given >= FAIR_FROM else None
            yield Figure(f"{name}_{what}", value, unit, goal, worse is min, note)
    rounds = max(over(points, "level", "rounds"))
    efficiency, count = worst_median(points, MORE_ROUNDS, "efficiency", min)
    more = max(over(points, MORE_ROUNDS, "rounds"))
    note = f"of messages, as in the servers. With {more:g} it gives out {efficiency:.3f} of what C-DRF does, "
    note += f"median at {count} applicants"
    yield Figure("leveldrf_rounds", rounds, "rounds", 4, note=note)
    yield Figure(f"leveldrf_efficiency_{more:g}_rounds", efficiency, "ratio", None, True, f"{count} applicants")
    speedup, count = worst_median(points, EXACT, "speedup", min)
    note = f"median of instances of {count} applicants; worst {min(over(points, EXACT, 'speedup')):.3g}"
    yield Figure("cdrf_exact_speedup", speedup, "ratio", 50, True, note)
    yield from _reference(points)
    stuck = max(over(points, EXACT, "without_room"))
    tenants = max(point.tenants for point in points)
    note = f"most in one instance, of {tenants} tenants at most: their SLAs wait where lent capacity does not yield"
    yield Figure("tenants_without_room_to_return", stuck, "tenants", note=f"{note}; in the servers it does")


def _reference(points: list[Shared]) -> Iterator[Figure]:
    """Whether exact C-DRF may stand for C-DRF request by request in the instances in which that was not run."""
    counted = [point.efficiency for point in points if point.algorithm == EXACT and point.speedup is not None]
    farthest = max(counted, key=lambda part: abs(part - 1))
    note = f"of what C-DRF request by request gives out, the farthest from it of {len(counted)} instances; "
    note += "it stands for it in the others"
    yield Figure("cdrf_exact_deviation", abs(farthest - 1), "ratio", 0.005, note=note)


FAIR_FROM = 0.5  # of what C-DRF gives out: whose tenants get less is not judged by how evenly


def worst_median(points: list[Shared], algorithm: str, what: str, worse: Any) -> tuple[float, int]:
    """Of the medians by number of applicants the worst, and that number."""
    counts = sorted({point.applicants for point in points if point.algorithm == algorithm})
    found: tuple[float, int] = worse((median(over(points, algorithm, what, count)), count) for count in counts)
    return found


def _pacing(seen: Seen) -> Iterator[Figure]:
    """What it is worth that a flooding client holds back what is beyond its rate, instead of being throttled."""
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
    # Of what C leaves, a quarter of what it uses and a twentieth of its SLA stay, so that it can grow unnoticed.
    spare = sla - seen.rate("C", idle)
    note = "B's appends/s above its SLA over what C leaves; C is left room to grow"
    yield Figure("fig7_lent_ratio", (seen.rate("B", idle) - sla) / spare, "ratio", 0.85, True, note)
    extra = [seen.rate(tenant, both) - sla for tenant in ("A", "B")]
    note = "of A and B, the one that got less over the one that got more, above their SLAs"
    yield Figure("fig7_lent_fairness_ratio", min(extra) / max(*extra, 1.0), "ratio", 0.9, True, note)
    worst = f"worst of {len(seen.returns)} returns"
    note = f"{worst}: from C's first append at its SLA until a window of 50 ms at its SLA"
    yield Figure("fig7_owner_back_ms", 1_000 * max(one.owner_back_s for one in seen.returns), "ms", 200, note=note)
    note = f"{worst}: until all three together are within what servers promise"
    yield Figure("fig7_taken_back_ms", 1_000 * max(one.taken_back_s for one in seen.returns), "ms", 200, note=note)
    for name, count in counts(seen).items():
        yield Figure(name, count.ratio, "ratio", COUNTED_GOALS.get(name), note=COUNTED[name])


def counts(seen: Seen) -> dict[str, Count]:
    """Of the figures that are shares of few: how many, of how many."""
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
    "idle_returns_short_ratio": f"returns of an owner of whose SLA {LENT_PART_MIN:.0%} or more was lent, after which "
    "it had its SLA in no window within an interval",
    "idle_tenants_short_ratio": "tenants that had one such interval or more while all that is idle was shared; paper, "
    "which counts tenants: > 0.95",
}
