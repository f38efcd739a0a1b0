"""The figures of Figure 5, each with its goal (the paper's, or better)."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

from quorate_harness.figures import Figure
from quorate_papers.instances import OURS, RESOURCES
from quorate_papers.placement import COUNTS, HOWS, ORDERS, Point

MOST = max(COUNTS)
ALLOCATED = 0.98  # the scarce resource: the paper's "above 98%"
PAPER_REPLICAS = 200
DEAREST_US = 20  # a replica, in the largest fleet


def placement(points: list[Point], testbed: list[Point]) -> Iterator[Figure]:
    """With most applicants: of servers of today, and of the paper's testbed."""
    for name, chosen in (("placement", points), ("placement_testbed", testbed)):
        for how in HOWS:
            last = {point.algorithm: point for point in chosen if point.how == how and point.applicants == MOST}
            ours, filo = last["shape"], last["filo"]
            note = f"of the scarce resource ({_scarce(ours)}), {MOST} applicants; Algorithm 1: {filo.allocated:.3f}; "
            note += f"of the fullest resource {ours.fullest:.3f}; an optimum has at most 1; paper: > 0.98"
            yield Figure(f"{name}_allocated_ratio_{how}", ours.allocated, "ratio", ALLOCATED, True, note)
        if chosen is testbed:
            online = next(one for one in chosen if (one.how, one.algorithm, one.applicants) == ("online", "filo", MOST))
            note = f"Algorithm 1, {MOST} applicants, {online.tenants:.0f} tenants; paper: about {PAPER_REPLICAS}"
            yield Figure(f"{name}_replicas_online", online.replicas, "replicas", note=note)


def _scarce(point: Point) -> str:
    """The scarce resource in words, with the number of its instances."""
    of = sum(point.scarce)
    named = [f"{RESOURCES[i]} in {count} of {of} instances" for i, count in enumerate(point.scarce) if count]
    return ", ".join(named)


def of_kinds(rows: list[dict[str, Any]]) -> Iterator[Figure]:
    """Applicants of other kinds, and in other orders, than the paper's."""
    for order in sorted({row["order"] for row in rows}, key=ORDERS.index):
        own = [row for row in rows if row["order"] == order]
        least = min(own, key=lambda row: row["shape"])
        loss = min(own, key=lambda row: row["shape"] - row["filo"])
        note = f"of the scarce resource, the least of {len(own)} kinds ({least['kind']}); Algorithm 1 there "
        note += f"{least['filo']:.3f}; least gain over it {loss['shape'] - loss['filo']:+.3f} ({loss['kind']})"
        name = "placement_allocated_ratio_any_kind_" + order.replace(", ", "_").replace(" ", "_")
        yield Figure(name, least["shape"], "ratio", None, True, note)
    drawn = next(row for row in rows if row["kind"] == OURS.name and row["order"] == "online, as drawn")
    note = "of the scarce resource; applicants in an order by chance, not the worst one; of the fullest resource "
    note += f"{drawn['shape_fullest']:.3f}; Algorithm 1: {drawn['filo']:.3f}"
    yield Figure("placement_allocated_ratio_online_as_drawn", drawn["shape"], "ratio", ALLOCATED, True, note)


def beside_optimum(optima: list[dict[str, Any]]) -> Iterator[Figure]:
    """Against the solver's optimum, and against its proven bound: the same for the instances that it finished."""
    proven = [row for row in optima if row["proven"]]
    about = f"{len(proven)} of {len(optima)} optima proven, {optima[0]['servers']} servers"
    for how, name in (("offline", "placement_vs_optimal_ratio"), ("online", "placement_vs_optimal_ratio_online")):
        ratios = [row[how] / row["found"] for row in proven]
        note = f"of the scarce resource, median over proven optima; worst {min(ratios, default=0):.3f}; {about}"
        if how == "offline":
            note += f"; Algorithm 1: {median([row['offline_filo'] / row['found'] for row in proven] or [0]):.3f}"
        if how == "online":
            note += "; the optimum knows later applicants, and no on-line algorithm does"
        yield Figure(name, median(ratios or [0.0]), "ratio", ALLOCATED, True, note)
        bounds = [row[how] / row["bound"] for row in optima]
        note = f"median over the solver's bounds, reached or not; worst {min(bounds):.3f}; {about}"
        yield Figure(name.replace("optimal", "bound"), median(bounds), "ratio", None, True, note)


def at_scale(us_per_replica: dict[int, float]) -> Iterator[Figure]:
    """Time of a replica, by the number of servers."""
    for servers, us in us_per_replica.items():
        goal = DEAREST_US if servers == max(us_per_replica) else None
        count = f"{servers // 1_000}k" if servers >= 1_000 else str(servers)
        yield Figure(
            f"placement_us_per_replica_{count}", us, "us", goal, note=f"{servers:,} servers, 5 failure domains"
        )
    smallest, largest = min(us_per_replica), max(us_per_replica)
    grown = us_per_replica[largest] / us_per_replica[smallest]
    note = f"{smallest:,} to {largest:,} servers; memory and caches grow, too: a test counts the nodes visited"
    yield Figure("placement_us_growth_ratio", grown, "ratio", note=note)
