"""The figures that are kept, each with its goal (the paper's, or better)."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

from quorate_local.figures import Figure
from quorate_paper.conservation import Point as Shared
from quorate_paper.conservation import over
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
