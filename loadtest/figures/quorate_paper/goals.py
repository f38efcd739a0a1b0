"""The figures that are kept, each with its goal (the paper's, or better)."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

from quorate_local.figures import Figure
from quorate_paper.conservation import Point as Shared
from quorate_paper.conservation import over
from quorate_paper.placement import COUNTS, HOWS
from quorate_paper.placement import Point as Placed

MOST = max(COUNTS)


def placement(points: list[Placed], optima: list[dict[str, Any]], us_per_replica_10k: float) -> Iterator[Figure]:
    for how in HOWS:
        last = next(point for point in points if point.how == how and point.applicants == MOST)
        note = f"of the scarce resource, {MOST} applicants; paper: > 0.98"
        yield Figure(f"placement_allocated_ratio_{how}", last.allocated, "ratio", 0.98, True, note)
    proven = sum(row["proven"] for row in optima)
    note = f"off-line over the solver's bound, median; {proven} of {len(optima)} bounds proven to be reached"
    yield Figure("placement_vs_optimal_ratio", median(row["offline"] for row in optima), "ratio", 0.98, True, note)
    yield Figure("placement_us_per_replica_10k", us_per_replica_10k, "us", 20, note="10 000 servers, 5 failure domains")


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
