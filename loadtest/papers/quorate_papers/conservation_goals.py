"""The figures of Figure 6, each with its goal: the paper's for its algorithms, ours for Level-DRF.

Efficiency is the paper's: granted amount of the scarce resource on all servers, as a part of C-DRF's. The paper does
not say how much more its tenants want. So its numbers are goals for two wishes: all there is, and as much again as the
tenant reserved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import log, sqrt
from statistics import fmean, linear_regression, median
from typing import Any

from quorate_harness.figures import Figure
from quorate_papers.conservation import EXACT, MORE_ROUNDS, Point, over

FAIR_FROM = 0.5  # a part of C-DRF's efficiency: below, evenness says nothing


@dataclass(frozen=True)
class Goals:
    """Goals of one algorithm; `paper`: the paper's numbers, in the same order."""

    efficiency: float
    speedup: float
    fairness_ratio: float | None
    messages: float | None
    paper: tuple[str, str, str, str]
    is_speedup_at_best: bool = False  # the goal is for the number of applicants with the best median


GOALS = {
    "head": Goals(
        0.70, 5, None, 150, ("about 0.75, and 0.70 in its conclusion", "5× at best", "less fair", "150"), True
    ),
    "all": Goals(0.95, 5, 1.05, 150, ("0.95", "5× at best", "close to 1", "150 at worst"), True),
    "level": Goals(0.99, 100, 1.05, None, ("–", "–", "–", "–")),
}
NAMES = {"head": "headdrf", "all": "alldrf", "level": "leveldrf"}
WHATS = ("efficiency", "speedup", "fairness_ratio", "messages")


def conservation(points: list[Point], regime: str = "") -> Iterator[Figure]:
    """Medians over the instances of one number of applicants; the number with the worst median counts, since small
    instances are easy. `regime`: a part of the figures' names."""
    for algorithm, goals in GOALS.items():
        if any(point.algorithm == algorithm for point in points):
            yield from _of_algorithm(points, algorithm, goals, NAMES[algorithm] + regime)
    yield from _against_exact(points, regime)
    if not regime:
        yield from _of_level(points)
        yield from _of_exact(points)


def _of_algorithm(points: list[Point], algorithm: str, goals: Goals, name: str) -> Iterator[Figure]:
    given = worst_median(points, algorithm, "efficiency", min)[0]
    for what, said in zip(WHATS, goals.paper, strict=True):
        goal, worse = getattr(goals, what), max if what in ("fairness_ratio", "messages") else min
        value, count = worst_median(points, algorithm, what, worse)
        note = _note(points, algorithm, what, count, "worst")
        note += f"; worst of all {worse(over(points, algorithm, what)):.3g}; paper: {said}"
        if what == "speedup":
            note = f"over C-DRF request by request; {note}"
            if goals.is_speedup_at_best:
                yield _best_speedup(points, algorithm, goals, name, said)
                goal = None
        if what == "fairness_ratio":
            note += f"; gives out {given:.3f} of what C-DRF does"
            goal = goal if given >= FAIR_FROM else None
        unit = "messages" if what == "messages" else "ratio"
        yield Figure(f"{name}_{what}", value, unit, goal, worse is min, note)


def _best_speedup(points: list[Point], algorithm: str, goals: Goals, name: str, said: str) -> Figure:
    """The paper gives its greatest speed-up, so the number of applicants with the best median counts here."""
    value, count = worst_median(points, algorithm, "speedup", max)
    note = f"over C-DRF request by request; {_note(points, algorithm, 'speedup', count, 'best')}; paper: {said}"
    return Figure(f"{name}_speedup_best", value, "ratio", goals.speedup, True, note)


def _note(points: list[Point], algorithm: str, what: str, count: int, which: str) -> str:
    instances = over(points, algorithm, what, count)
    return f"median of {len(instances)} instances of {count} applicants, the {which} number"


def _against_exact(points: list[Point], regime: str) -> Iterator[Figure]:
    """A distributed algorithm should be faster than the fastest central one; at ten servers it is not."""
    value, count = worst_median(points, "level", "speedup_exact", min)
    note = (
        f"over exact C-DRF on one machine: below 1 it is slower; median of instances of {count} applicants, the worst "
    )
    note += "number"
    yield Figure(f"leveldrf{regime}_speedup_exact", value, "ratio", 1, True, note)


def _of_level(points: list[Point]) -> Iterator[Figure]:
    iterations = max(over(points, "level", "rounds"))
    efficiency, count = worst_median(points, MORE_ROUNDS, "efficiency", min)
    more = max(over(points, MORE_ROUNDS, "rounds"))
    note = (
        f"iterations of messages, as in the servers. With {more:g} it gives out {efficiency:.3f} of what C-DRF does, "
    )
    note += f"median at {count} applicants"
    yield Figure("leveldrf_rounds", iterations, "rounds", 4, note=note)
    yield Figure(f"leveldrf_efficiency_{more:g}_rounds", efficiency, "ratio", None, True, f"{count} applicants")


def _of_exact(points: list[Point]) -> Iterator[Figure]:
    speedup, count = worst_median(points, EXACT, "speedup", min)
    note = f"over C-DRF request by request; median of instances of {count} applicants; worst "
    note += f"{min(over(points, EXACT, 'speedup')):.3g}"
    yield Figure("cdrf_exact_speedup", speedup, "ratio", 50, True, note)
    # Exact C-DRF stands for C-DRF in the instances in which that was not run request by request.
    counted = [point.efficiency for point in points if point.algorithm == EXACT and point.speedup is not None]
    farthest = max(counted, key=lambda part: abs(part - 1))
    note = f"from C-DRF request by request, the farthest of {len(counted)} instances; it stands for it in the others"
    yield Figure("cdrf_exact_deviation", abs(farthest - 1), "ratio", 0.005, note=note)
    stuck = max(over(points, EXACT, "without_room"))
    tenants = max(point.tenants for point in points)
    note = (
        f"most in one instance, of {tenants} tenants at most: their SLAs wait if burst capacity does not yield; in the "
    )
    note += "servers it does"
    yield Figure("tenants_without_room_to_return", stuck, "tenants", note=note)


def bounded(rows: list[dict[str, Any]], regime: str = "") -> Iterator[Figure]:
    """The paper's efficiencies, if a tenant wants as much again as it reserved."""
    for algorithm in ("head", "all"):
        values = [row["efficiency"][algorithm] for row in rows if row["demand"] == 1]
        note = (
            f"median of {len(values)} instances; tenants want as much again as they reserved; worst {min(values):.3g}; "
        )
        note += f"paper: {GOALS[algorithm].paper[0]}"
        name = f"{NAMES[algorithm]}{regime}_efficiency_bounded"
        yield Figure(name, median(values), "ratio", GOALS[algorithm].efficiency, True, note)


def growth(rows: list[dict[str, Any]]) -> Iterator[Figure]:
    """Growth of the speed-up with the number of tenants, in fleets with as many tenants a server. It is the exponent b
    of speed-up = a × tenants^b that fits all instances best (least squares of logarithms), less two standard errors."""
    fleets = ", ".join(str(row["servers"]) for row in rows)
    for name, algorithm in (("alldrf", "all"), ("leveldrf", "level")):
        instances = [
            (log(tenants), log(value)) for row in rows for tenants, value in row["speedup_by_tenants"][algorithm]
        ]
        exponent, error = fitted(instances)
        seen = ", ".join(f"{row['speedup'][algorithm]:,.3g}" for row in rows)
        is_monotone = min(steps(rows, algorithm)) >= 1
        note = f"over C-DRF request by request; at least, with two standard errors off; fitted to {len(instances)} "
        note += f"instances: {exponent:.2f}, twice the tenants, {2**exponent:.2f} times the speed-up; "
        note += f"medians {seen} with {fleets} servers, {'' if is_monotone else 'not '}monotone; paper: grows"
        yield Figure(f"{name}_speedup_growth", exponent - 2 * error, "exponent", 0, True, note)
    yield from _of_last(rows[-1])


def _of_last(last: dict[str, Any]) -> Iterator[Figure]:
    """Level-DRF in the largest fleet. The paper has ten servers, so its efficiency has no goal."""
    note = f"of exact C-DRF; median of {last['instances']} instances, "
    note += f"{last['tenants']:g} tenants; worst {last['worst_efficiency']['level']:.3f}"
    name = f"leveldrf_efficiency_{last['servers']}_servers"
    yield Figure(name, last["efficiency"]["level"], "ratio", None, True, note)
    note = f"over exact C-DRF on one machine: below 1 it is slower; median of {last['instances']} instances"
    name = f"leveldrf_speedup_exact_{last['servers']}_servers"
    yield Figure(name, last["speedup_exact"]["level"], "ratio", 1, True, note)


def fitted(points: list[tuple[float, float]]) -> tuple[float, float]:
    """Slope of the line through them by least squares, and its standard error."""
    slope, intercept = linear_regression(*zip(*points, strict=True))
    mean = fmean(x for x, _ in points)
    spread = sum((x - mean) ** 2 for x, _ in points)
    left = sum((y - intercept - slope * x) ** 2 for x, y in points)
    return slope, sqrt(left / (len(points) - 2) / spread)


def steps(rows: list[dict[str, Any]], algorithm: str) -> list[float]:
    """Growth of the median speed-up from each fleet to the next."""
    speedups = [row["speedup"][algorithm] for row in rows]
    return [later / before for before, later in pairwise(speedups)]


def many(row: dict[str, Any]) -> Figure:
    """The goal is two hundredths of an interval of one second: the server has other things to do."""
    tenants = f"{row['tenants_of_a_server']:,} tenants that want more"
    note = f"processor time of all {row['rounds']} iterations of an interval (messages taken, view filled, commitments "
    note += f"made and sent), the busiest of ten servers that each host {tenants}, median of {row['repeat']} runs; "
    note += (
        "without collecting loads, encoding and decoding frames, keeping commitments, and building views again after "
    )
    note += f"free amounts changed; gives out {row['efficiency']:.3f} of what C-DRF does"
    return Figure("level_drf_round_us_10k_tenants", row["time_us"], "us", 20_000, note=note)


def worst_median(
    points: list[Point], algorithm: str, what: str, worse: Callable[..., tuple[float, int]]
) -> tuple[float, int]:
    """The worst of the medians by number of applicants, and that number."""
    counts = sorted({point.applicants for point in points if point.algorithm == algorithm})
    return worse((median(over(points, algorithm, what, count)), count) for count in counts)
