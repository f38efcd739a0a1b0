"""Filo's Figure 5: placement on-line and off-line over the number of applicants, and beside an exact solver."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import mean, median, stdev
from typing import Any, TypeAlias

from quorate_papers import alloc
from quorate_papers.instances import KINDS, OURS, Instance, Regime, applicants, most_wanted, servers, vectors_of
from quorate_papers.solver import optimum

COUNTS = [10, 30, 50, 70, 90, 110, 130, 150]
SERVERS = 10
HOWS = ("online", "offline")
ALGORITHMS = ("shape", "filo")
ORDERS = ("online, increasing", "online, as drawn", "offline")


Progress: TypeAlias = Callable[[str], None]


def nothing(_: str) -> None:
    """For callers that do not want to hear of progress."""


@dataclass(frozen=True)
class Point:
    """Means over the seeds; ratios as CPU, network, storage IO."""

    how: str
    algorithm: str
    applicants: int
    used_servers: float
    tenants: float
    replicas: float
    replicas_per_server: float
    replicas_per_server_ci95: float
    free: list[float]
    allocated: float  # each instance's scarce resource (`most_wanted`)
    fullest: float  # the resource of which most was allocated in the end
    scarce: list[int]  # instances in which each resource is scarce
    us_per_replica: float

    def row(self) -> dict[str, Any]:
        return asdict(self)


def instance(seed: int, count: int, how: str, regime: Regime = OURS) -> Instance:
    """The worst order for on-line: increasing dominant shares (off-line orders by itself)."""
    drawn, fleet = regime.applicants(seed, count), regime.servers(SERVERS)
    if how in ("online", ORDERS[0]):
        capacity = fleet[0]["capacity"]

        def share(wanted: list[list[float]]) -> float:
            return float(max(sum(vector[i] for vector in wanted) / capacity[i] for i in range(3)))

        shares = {one["id"]: share(wanted) for one, wanted in zip(drawn, vectors_of(drawn), strict=True)}
        drawn.sort(key=lambda one: shares[one["id"]])
    return {"servers": fleet, "applicants": drawn}


def points(seeds: range, counts: list[int], progress: Progress = nothing, regime: Regime = OURS) -> list[Point]:
    found = []
    for how in HOWS:
        for algorithm in ALGORITHMS:
            for count in counts:
                progress(f"{regime.name}, {how}, {algorithm}, {count} applicants")
                found.append(_point(how, algorithm, count, seeds, regime))
    return found


def _point(how: str, algorithm: str, count: int, seeds: range, regime: Regime) -> Point:
    made = [instance(seed, count, how, regime) for seed in seeds]
    answers = [alloc.place(one, how, algorithm) for one in made]
    scarce = [most_wanted(one) for one in made]
    loads = [_loads(answer) for answer in answers]
    per_server = [load for one in loads for load in one]
    return Point(
        how=how,
        algorithm=algorithm,
        applicants=count,
        used_servers=mean(sum(load > 0 for load in one) for one in loads),
        tenants=mean(len(answer["placed"]) for answer in answers),
        replicas=mean(sum(one) for one in loads),
        replicas_per_server=mean(per_server),
        replicas_per_server_ci95=1.96 * stdev(per_server) / len(per_server) ** 0.5,
        free=[mean(1 - answer["allocated_ratio"][i] for answer in answers) for i in range(3)],
        allocated=mean(answer["allocated_ratio"][i] for answer, i in zip(answers, scarce, strict=True)),
        fullest=mean(max(answer["allocated_ratio"]) for answer in answers),
        scarce=[scarce.count(i) for i in range(3)],
        us_per_replica=median(answer["us_per_replica"] for answer in answers),
    )


def kinds(seeds: range, count: int, progress: Progress = nothing) -> list[dict[str, Any]]:
    """Applicants of other kinds and orders than the paper's: that no choice is made for one generator alone."""
    rows = []
    for kind in KINDS:
        for order in ORDERS:
            progress(f"{kind.name}, {order}")
            how = order.split(",")[0]
            row: dict[str, Any] = {"kind": kind.name, "order": order, "applicants": count, "seeds": len(seeds)}
            made = [instance(seed, count, order, kind) for seed in seeds]
            scarce = [most_wanted(one) for one in made]
            for algorithm in ALGORITHMS:
                ratios = [alloc.place(one, how, algorithm)["allocated_ratio"] for one in made]
                row[algorithm] = mean(one[i] for one, i in zip(ratios, scarce, strict=True))
                row[f"{algorithm}_fullest"] = mean(max(one) for one in ratios)
            rows.append(row)
    return rows


def _loads(answer: dict[str, Any]) -> list[int]:
    load = {server["id"]: 0 for server in answer["servers"]}
    for placed in answer["placed"]:
        for server in placed["servers"]:
            load[server] += 1
    return list(load.values())


def against_optimum(seeds: range, count: int, seconds: float, progress: Progress = nothing) -> list[dict[str, Any]]:
    """Ours, off-line and on-line, and Algorithm 1 off-line, of the scarce resource, beside the solver's optimum on
    instances small enough for it to prove one. Applicants come on-line in an order by chance."""
    rows = []
    for seed in seeds:
        progress(f"solver, instance {seed} of {len(seeds)}")
        made = {"servers": servers(SOLVED_SERVERS), "applicants": small(seed, count)}
        answers = {how: alloc.place(made, how)["allocated_ratio"] for how in HOWS}
        filo = alloc.place(made, "offline", "filo")["allocated_ratio"]
        scarce = most_wanted(made)
        best = optimum(made, scarce, seconds)
        rows.append(
            {
                "seed": seed,
                "applicants": count,
                "servers": SOLVED_SERVERS,
                "scarce": scarce,
                "found": best.found,
                "bound": best.bound,
                "proven": best.proven,
                "offline_filo": filo[scarce],
                **{how: answers[how][scarce] for how in HOWS},
            }
        )
    return rows


SOLVED_SERVERS = 4
SCALES = (100, 1_000, 10_000)


def small(seed: int, count: int) -> list[dict[str, Any]]:
    """Applicants of the paper's kinds that fit this number of servers."""
    fitting = (one for one in applicants(seed, 10 * count) if one["sla"]["replication_degree"] <= SOLVED_SERVERS)
    return list(itertools.islice(fitting, count))


def at_scale(seed: int, server_count: int, repeat: int) -> float:
    """Microseconds a replica, on-line, in five failure domains: the fleet half full at the end; median."""
    groups = server_count * 2
    drawn = {"servers": servers(server_count, domains=5), "applicants": applicants(seed, groups)}
    return median(float(alloc.place(drawn, "online")["us_per_replica"]) for _ in range(repeat))
