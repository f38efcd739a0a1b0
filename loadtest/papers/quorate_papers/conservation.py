"""Filo's Figure 6: distributed allocation against C-DRF, over the number of applicants, with the policy `idle`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, median, pstdev
from typing import Any

from quorate_papers import alloc
from quorate_papers.draw import SIZES
from quorate_papers.instances import (
    OURS,
    Regime,
    applicants,
    conservation,
    most_wanted_more,
    reserved_per_s,
    servers,
)
from quorate_papers.placement import Progress, instance, nothing

REFERENCE = "cdrf"
EXACT = "cdrf-exact"
ALGORITHMS = (REFERENCE, EXACT, "head", "all", "level")
CHEAP = (EXACT, "level")  # the others count requests: their time grows with what there is to share
REPEAT = {REFERENCE: 1, EXACT: 15, "head": 1, "all": 1, "level": 15}
MORE_ROUNDS = "level, two rounds more"
_MORE = ("--crowd-rounds", "4")


@dataclass(frozen=True)
class Point:
    """One instance and algorithm. `scarce`: the instance's scarce resource (`most_wanted_more`). C-DRF is the one
    request by request if that was run, else the exact one. `speedup` is against the former, `speedup_exact` against the
    latter."""

    algorithm: str
    applicants: int
    seed: int
    tenants: int
    time_us: float
    messages: int
    rounds: int
    granted: list[float]
    scarce: int
    efficiency: float
    deviation: float
    speedup: float | None
    speedup_exact: float
    fairness_ratio: float
    without_room: int

    def row(self) -> dict[str, Any]:
        return asdict(self)


def points(
    seeds: range, counts: list[int], dear: int, progress: Progress = nothing, regime: Regime = OURS
) -> list[Point]:
    """`dear`: the number of instances in which the algorithms are run that count requests."""
    found = []
    for count in counts:
        for number, seed in enumerate(seeds):
            progress(f"{regime.name}, {count} applicants, instance {seed} of {len(seeds)}")
            found += _compared(count, seed, ALGORITHMS if number < dear else CHEAP, regime)
    return found


def _compared(count: int, seed: int, algorithms: tuple[str, ...], regime: Regime) -> list[Point]:
    made = instance(seed, count, "online", regime)
    shared = conservation(made, alloc.place(made, "online", "filo"))
    wanting = {tenant["id"] for tenant in shared["tenants"] if "extra" in tenant}
    answers = {one: alloc.conserve(shared, one, REPEAT[one]) for one in algorithms}
    answers[MORE_ROUNDS] = alloc.conserve(shared, "level", REPEAT["level"], *_MORE)
    counted = answers.get(REFERENCE)
    reference = counted or answers[EXACT]
    scarce = most_wanted_more(shared, reference["free_before"])
    exact_us = answers[EXACT]["slowest_server_us"]
    even = deviation(reference, wanting)
    return [
        Point(
            algorithm=one,
            applicants=count,
            seed=seed,
            tenants=len(shared["tenants"]),
            time_us=answer["slowest_server_us"],
            messages=answer["messages"],
            rounds=answer["rounds"],
            granted=answer["granted_ratio"],
            scarce=scarce,
            efficiency=part_of(answer, reference, scarce),
            deviation=deviation(answer, wanting),
            speedup=counted["slowest_server_us"] / answer["slowest_server_us"] if counted else None,
            speedup_exact=exact_us / answer["slowest_server_us"],
            fairness_ratio=deviation(answer, wanting) / even if even else 1.0,
            without_room=answer["tenants_without_room_to_return"],
        )
        for one, answer in answers.items()
    ]


def part_of(answer: dict[str, Any], reference: dict[str, Any], scarce: int) -> float:
    """Efficiency as in the paper's Figure 6(c): granted amount of the scarce resource, as a part of C-DRF's.

    Amounts are of all servers. It is 1 if C-DRF grants none."""
    given, best = (one["granted_ratio"][scarce] for one in (answer, reference))
    return float(given / best) if best else 1.0


# A tenant's wish as a part of its reservation; None for all there is.
DEMANDS = (0.25, 0.5, 1, 2, None)


def by_demand(seeds: range, count: int, progress: Progress = nothing, regime: Regime = OURS) -> list[dict[str, Any]]:
    """Efficiency over the rate that tenants want: proposals that pass whole or not at all live from modest wishes."""
    rows = []
    for seed in seeds:
        progress(f"{regime.name}, by demand, instance {seed} of {len(seeds)}")
        made = instance(seed, count, "online", regime)
        shared = conservation(made, alloc.place(made, "online", "filo"))
        for demand in DEMANDS:
            for tenant in shared["tenants"]:
                if "extra" in tenant and demand is not None:
                    tenant["extra"] = {"per_s": max(1, int(demand * reserved_per_s(tenant)))}
                elif "extra" in tenant:
                    tenant["extra"] = "all"
            best = alloc.conserve(shared, EXACT)
            scarce = most_wanted_more(shared, best["free_before"])
            answers = {one: alloc.conserve(shared, one) for one in ("head", "all", "level")}
            efficiency = {one: part_of(answer, best, scarce) for one, answer in answers.items()}
            rows.append({"applicants": count, "seed": seed, "demand": demand, "efficiency": efficiency})
    return rows


FLEETS = (10, 20, 40, 80)


def by_fleet(
    seeds: range, dear: int, counted: int, fleets: Sequence[int] = FLEETS, progress: Progress = nothing
) -> list[dict[str, Any]]:
    """Time and efficiency over the size of the fleet, 15 applicants a server. A server of All-DRF computes for its own
    tenants only. One of Level-DRF computes for the aggregates of its neighbours too, and a larger fleet has more.

    `dear`: the number of instances in which all algorithms are run that count requests. `counted`: the number in which
    C-DRF is run request by request. Speed-ups are against that, and against exact C-DRF. Efficiency is against exact
    C-DRF."""
    rows = []
    for count in fleets:
        times: dict[str, list[float]] = {one: [] for one in ALGORITHMS}
        speedups: dict[str, list[float]] = {one: [] for one in ALGORITHMS}
        exact: dict[str, list[float]] = {one: [] for one in ALGORITHMS}
        efficiencies: dict[str, list[float]] = {one: [] for one in ALGORITHMS}
        instances: dict[str, list[tuple[int, float]]] = {one: [] for one in ALGORITHMS}
        tenants = []
        for number, seed in enumerate(seeds):
            progress(f"{count} servers, instance {seed} of {len(seeds)}")
            made = {"servers": servers(count), "applicants": applicants(seed, 15 * count)}
            shared = conservation(made, alloc.place(made, "online", "filo"))
            tenants.append(len(shared["tenants"]))
            cheaper = (REFERENCE, *CHEAP) if number < counted else CHEAP
            algorithms = ALGORITHMS if number < dear else cheaper
            answers = {one: alloc.conserve(shared, one, REPEAT[one]) for one in algorithms}
            best = answers[EXACT]
            scarce = most_wanted_more(shared, best["free_before"])
            for one, answer in answers.items():
                times[one].append(answer["slowest_server_us"])
                exact[one].append(best["slowest_server_us"] / answer["slowest_server_us"])
                efficiencies[one].append(part_of(answer, best, scarce))
                if REFERENCE in answers:
                    speedups[one].append(answers[REFERENCE]["slowest_server_us"] / answer["slowest_server_us"])
                    instances[one].append((tenants[-1], speedups[one][-1]))
        rows.append(
            {
                "servers": count,
                "tenants": median(tenants),
                "instances": len(seeds),
                "time_us": {one: median(values) for one, values in times.items()},
                "speedup": {one: median(values) for one, values in speedups.items()},
                "speedup_exact": {one: median(values) for one, values in exact.items()},
                "speedup_by_tenants": instances,
                "efficiency": {one: median(values) for one, values in efficiencies.items()},
                "worst_efficiency": {one: min(values) for one, values in efficiencies.items()},
            }
        )
    return rows


MANY = 10_000
DEGREE = 5


def many_tenants(seed: int, repeat: int) -> dict[str, Any]:
    """Ten servers with `MANY` tenants each that want more, half of them all there is. The time is the busiest server's,
    of all iterations of an interval of Level-DRF; the median of `repeat` runs."""
    drawn = random.Random(seed)
    fleet, tenants = servers(10), []
    for number in range(MANY * len(fleet) // DEGREE):
        rate_per_s = drawn.randint(1, 40)
        sla = {
            "durability": drawn.choice(["in_memory", "persistent"]),
            "replication_degree": DEGREE,
            "request_size_bytes": drawn.choice(SIZES[:5]),
            "rate_per_s": rate_per_s,
        }
        chain = drawn.sample([server["id"] for server in fleet], DEGREE)
        extra: Any = "all" if number % 2 else {"per_s": drawn.randint(1, 2 * rate_per_s)}
        tenants.append({"id": f"t{number}", "placement": chain, "sla": sla, "extra": extra})
    shared = {"servers": fleet, "tenants": tenants}
    level, best = alloc.conserve(shared, "level", repeat), alloc.conserve(shared, EXACT)
    scarce = most_wanted_more(shared, best["free_before"])
    return {
        "tenants_of_a_server": MANY,
        "repeat": repeat,
        "time_us": level["slowest_server_us"],
        "rounds": level["rounds"],
        "messages": level["messages"],
        "efficiency": part_of(level, best, scarce),
    }


def deviation(answer: dict[str, Any], wanting: set[str]) -> float:
    """Standard deviation of utility over its mean, of the tenants that want more (Filo §6.3, "Fairness")."""
    utilities = [tenant["utility_per_s"] for tenant in answer["tenants"] if tenant["id"] in wanting]
    average = fmean(utilities) if utilities else 0.0
    return pstdev(utilities) / average if average else 0.0


def over(found: list[Point], algorithm: str, what: str, count: int | None = None) -> list[float]:
    chosen = (point for point in found if point.algorithm == algorithm and count in (None, point.applicants))
    return [float(value) for point in chosen if (value := getattr(point, what)) is not None]


def medians(found: list[Point], algorithm: str, what: str) -> list[float]:
    """By number of applicants."""
    counts = sorted({point.applicants for point in found})
    return [median(over(found, algorithm, what, count)) for count in counts]
