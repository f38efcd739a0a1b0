"""Figures 5 and 6 of Filo, computed by quorate-planner: on servers of today, and on the paper's testbed."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from quorate_harness.figures import Figure
from quorate_local.display import Display
from quorate_papers import conservation, conservation_goals, placement, placement_goals
from quorate_papers.instances import PAPER

Rows: TypeAlias = list[dict[str, Any]]
TESTBED = "_testbed"  # in the names of figures


@dataclass(frozen=True)
class Computed:
    placed: list[placement.Point]
    placed_testbed: list[placement.Point]
    kinds: Rows
    optima: Rows
    us_per_replica: dict[int, float]
    shared: list[conservation.Point]
    shared_testbed: list[conservation.Point]
    demanded: Rows
    demanded_testbed: Rows
    fleets: Rows
    many: dict[str, Any]

    def figures(self) -> Iterator[Figure]:
        yield from placement_goals.placement(self.placed, self.placed_testbed)
        yield from placement_goals.of_kinds(self.kinds)
        yield from placement_goals.beside_optimum(self.optima)
        yield from placement_goals.at_scale(self.us_per_replica)
        yield from conservation_goals.conservation(self.shared)
        yield from conservation_goals.bounded(self.demanded)
        yield from conservation_goals.conservation(self.shared_testbed, TESTBED)
        yield from conservation_goals.bounded(self.demanded_testbed, TESTBED)
        yield from conservation_goals.growth(self.fleets)
        yield conservation_goals.many(self.many)

    def data(self) -> dict[str, dict[str, Any]]:
        """By name of a file: the content of the plots and tables."""
        return {
            "figure-5": {
                "points": [point.row() for point in self.placed],
                "testbed": [point.row() for point in self.placed_testbed],
                "kinds": self.kinds,
                "optima": self.optima,
            },
            "figure-6": {
                "points": [point.row() for point in self.shared],
                "testbed": [point.row() for point in self.shared_testbed],
                "by_demand": self.demanded,
                "by_demand_testbed": self.demanded_testbed,
                "by_fleet": self.fleets,
                "many": self.many,
            },
        }


def compute(chosen: argparse.Namespace, display: Display) -> Computed:
    def progress(text: str) -> None:
        display.progress(f"  {text} …")

    seeds, few = range(1, chosen.seeds + 1), range(1, chosen.seeds_larger + 1)
    with display.step("Figure 5: placement"):
        placed = placement.points(seeds, chosen.counts, progress)
        placed_testbed = placement.points(seeds, chosen.counts, progress, PAPER)
    with display.step("placement of other kinds of applicants"):
        kinds = placement.kinds(seeds, placement_goals.MOST, progress)
    with display.step("placement beside an exact solver"):
        solved = range(1, chosen.solved + 1)
        optima = placement.against_optimum(solved, chosen.solved_applicants, chosen.solver_seconds, progress)
    with display.step("placement on 100, 1 000 and 10 000 servers"):
        us_per_replica = {count: placement.at_scale(1, count, 3) for count in placement.SCALES}
    with display.step("Figure 6: distributed allocation"):
        many_seeds, dear = range(1, chosen.seeds_shared + 1), chosen.seeds_dear
        shared = conservation.points(many_seeds, chosen.counts, dear, progress)
        demanded = conservation.by_demand(range(1, dear + 1), placement_goals.MOST, progress)
        shared_testbed = conservation.points(many_seeds, chosen.counts, len(many_seeds), progress, PAPER)
        demanded_testbed = conservation.by_demand(many_seeds, placement_goals.MOST, progress, PAPER)
    with display.step("Figure 6: larger fleets, many tenants"):
        fleets = conservation.by_fleet(many_seeds, len(few), dear, progress=progress)
        many = conservation.many_tenants(1, 5)
    return Computed(
        placed=placed,
        placed_testbed=placed_testbed,
        kinds=kinds,
        optima=optima,
        us_per_replica=us_per_replica,
        shared=shared,
        shared_testbed=shared_testbed,
        demanded=demanded,
        demanded_testbed=demanded_testbed,
        fleets=fleets,
        many=many,
    )
