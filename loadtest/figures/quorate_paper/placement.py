"""Filo's Figure 5: placement on-line and off-line over the number of applicants, and beside an exact solver."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import mean, median, stdev
from typing import Any, TypeAlias

from quorate_paper import alloc
from quorate_paper.instances import KINDS, RESOURCES, Instance, applicants, servers, vectors
from quorate_paper.solver import optimum

COUNTS = [10, 30, 50, 70, 90, 110, 130, 150]
SERVERS = 10
HOWS = ("online", "offline")
ALGORITHMS = ("shape", "filo")
ORDERS = ("online, increasing", "online, as drawn", "offline")


Told: TypeAlias = Callable[[str], None]


def nothing(_: str) -> None:
    """Whoever does not want to hear of progress."""


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
    allocated: float  # of the resource that is scarce in each instance
    allocated_most_wanted: float  # of that of which applicants together want most, whatever is allocated of it
    us_per_replica: float

    def row(self) -> dict[str, Any]:
        return asdict(self)


def instance(seed: int, count: int, how: str, kind: str = "Filo §6.2") -> Instance:
    """The worst order for on-line: increasing dominant shares (off-line orders by itself)."""
    drawn = KINDS[kind](seed, count)
    if how in ("online", ORDERS[0]):
        capacity = servers(1)[0]["capacity"]

        def share(applicant: dict[str, Any]) -> float:
            wanted = vectors(applicant)
            return float(max(sum(vector[i] for vector in wanted) / capacity[i] for i in range(3)))

        drawn.sort(key=share)
    return {"servers": servers(SERVERS), "applicants": drawn}


def points(seeds: range, counts: list[int], told: Told = nothing) -> list[Point]:
    found = []
    for how in HOWS:
        for algorithm in ALGORITHMS:
            for count in counts:
                told(f"{how}, {algorithm}, {count} applicants")
                found.append(_point(how, algorithm, count, seeds))
    return found


def _point(how: str, algorithm: str, count: int, seeds: range) -> Point:
    made = [instance(seed, count, how) for seed in seeds]
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
        allocated=mean(max(answer["allocated_ratio"]) for answer in answers),
        allocated_most_wanted=mean(answer["allocated_ratio"][i] for answer, i in zip(answers, scarce, strict=True)),
        us_per_replica=median(answer["us_per_replica"] for answer in answers),
    )


def kinds(seeds: range, count: int, told: Told = nothing) -> list[dict[str, Any]]:
    """Applicants of other kinds and orders than the paper's: that no choice is made for one generator alone."""
    rows = []
    for kind in KINDS:
        for order in ORDERS:
            told(f"{kind}, {order}")
            how = order.split(",")[0]
            row: dict[str, Any] = {"kind": kind, "order": order, "applicants": count, "seeds": len(seeds)}
            for algorithm in ALGORITHMS:
                answers = [alloc.place(instance(seed, count, order, kind), how, algorithm) for seed in seeds]
                row[algorithm] = mean(max(answer["allocated_ratio"]) for answer in answers)
            rows.append(row)
    return rows


def _loads(answer: dict[str, Any]) -> list[int]:
    load = {server["id"]: 0 for server in answer["servers"]}
    for placed in answer["placed"]:
        for server in placed["servers"]:
            load[server] += 1
    return list(load.values())


def against_optimum(seeds: range, count: int, seconds: float, told: Told = nothing) -> list[dict[str, Any]]:
    """Ours, off-line and on-line, and Algorithm 1 off-line, of the scarce resource, beside what the solver finds on
    instances small enough for it to prove its optimum. Applicants come on-line in an order by chance."""
    rows = []
    for seed in seeds:
        told(f"solver, instance {seed} of {len(seeds)}")
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


def most_wanted(made: Instance) -> int:
    """The resource of which all applicants together want the largest part of what there is: known before anybody
    places, and so not chosen by what ours gives out."""
    wanted = [vector for applicant in made["applicants"] for vector in vectors(applicant)]

    def part(resource: int) -> float:
        capacity = sum(server["capacity"][resource] for server in made["servers"])
        return float(sum(vector[resource] for vector in wanted) / capacity)

    return max(range(len(RESOURCES)), key=part)


SOLVED_SERVERS = 4
SCALES = (100, 1_000, 10_000)


def small(seed: int, count: int) -> list[dict[str, Any]]:
    """Of the paper's applicants those that fit so few servers."""
    fitting = (one for one in applicants(seed, 10 * count) if one["sla"]["replication_degree"] <= SOLVED_SERVERS)
    return list(itertools.islice(fitting, count))


def at_scale(seed: int, server_count: int, repeat: int) -> float:
    """Microseconds a replica, on-line, in five failure domains: the fleet half full at the end; median."""
    groups = server_count * 2
    drawn = {"servers": servers(server_count, domains=5), "applicants": applicants(seed, groups)}
    return median(float(alloc.place(drawn, "online")["us_per_replica"]) for _ in range(repeat))
