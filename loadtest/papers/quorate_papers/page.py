"""The page of Figures 5 and 6: its numbers and its verdicts come from the same run as its plots."""

from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from quorate_harness.figures import Figure, machine, markdown
from quorate_papers import conservation, conservation_goals, costs, placement, profiles
from quorate_papers.computed import Computed, Rows
from quorate_papers.instances import RESOURCES

TEXT = Path(__file__).parent / "page.txt"
# Figures that the paper gives a number for, by the sentence that they are judged in.
CLAIMS = {
    "more than 98 % of the scarce resource is allocated": ("placement{}_allocated_ratio_{how}",),
    "All-DRF gives out 95 % of C-DRF's": ("alldrf{}_efficiency", "alldrf{}_efficiency_bounded"),
    "Head-DRF gives out 70 to 75 % of C-DRF's": ("headdrf{}_efficiency", "headdrf{}_efficiency_bounded"),
    "distributed algorithms are up to 5 times faster than C-DRF": ("alldrf{}_speedup_best", "headdrf{}_speedup_best"),
    "All-DRF's deviation is close to C-DRF's": ("alldrf{}_fairness_ratio",),
    "150 messages at worst": ("alldrf{}_messages", "headdrf{}_messages"),
}


def page(computed: Computed, figures: list[Figure], chosen: argparse.Namespace, command: str, commit: str) -> str:
    profile = profiles.chosen()
    return costs.banner(TEXT) + TEXT.read_text().format(
        command=command,
        commit=commit,
        machine=machine(),
        profile=profiles.described(profile.about(), profile.instead_of),
        safety_factor=f"{profile.safety_factor:.0%}",
        seeds=chosen.seeds,
        seeds_shared=chosen.seeds_shared,
        seeds_dear=chosen.seeds_dear,
        seeds_larger=chosen.seeds_larger,
        solved_applicants=chosen.solved_applicants,
        solved_servers=placement.SOLVED_SERVERS,
        iterations=next(f"{figure.value:g}" for figure in figures if figure.name == "leveldrf_rounds"),
        counts=", ".join(map(str, chosen.counts)),
        figures="\n".join(markdown(figures)),
        claims=claims(figures),
        scarce=scarce(computed.placed),
        scarce_testbed=scarce(computed.placed_testbed),
        kinds="\n".join(
            f"| {row['kind']} | {row['order']} | {row['filo']:.3f} | {row['shape']:.3f} | {row['filo_fullest']:.3f} "
            f"| {row['shape_fullest']:.3f} |"
            for row in computed.kinds
        ),
        demands="\n".join(
            _demand(demand, computed.demanded, computed.demanded_testbed) for demand in conservation.DEMANDS
        ),
        fleets="\n".join(_fleet(row) for row in computed.fleets),
        growth=growth(computed.fleets),
    )


NOT_MEASURED = "**no figure**"  # so that a figure that was renamed does not just vanish from the page


def claims(figures: list[Figure]) -> str:
    """A row for each of the paper's claims: its figures in both regimes, with their verdicts."""
    by_name = {figure.name: figure for figure in figures}
    rows = []
    for claim, names in CLAIMS.items():
        cells = []
        for regime in ("_testbed", ""):
            own = [name.format(regime, how=how) for name in names for how in placement.HOWS]
            judged = [by_name[name] for name in dict.fromkeys(own) if name in by_name]
            cells.append(", ".join(f"`{one.name}` {_verdict(one)}" for one in judged) or NOT_MEASURED)
        rows.append(f"| {claim} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _verdict(figure: Figure) -> str:
    verdict = {True: "met", False: "**MISSED**", None: "not judged"}[figure.met]
    return f"{figure.value:.3g}: {verdict}"


def scarce(points: list[placement.Point]) -> str:
    """The scarce resource with most applicants, in words."""
    last = max(points, key=lambda point: point.applicants)
    named = [f"{RESOURCES[i]} in {count}" for i, count in enumerate(last.scarce) if count]
    return f"{' and '.join(named)} of {sum(last.scarce)} instances"


def _demand(demand: float | None, *regimes: Rows) -> str:
    parts = []
    for rows in regimes:
        chosen = [row["efficiency"] for row in rows if row["demand"] == demand]
        parts += [median(row[one] for row in chosen) for one in ("head", "all", "level")]
    wanted = "all there is" if demand is None else f"{demand:g} × its reservation"
    return f"| {wanted} | " + " | ".join(f"{part:.3f}" for part in parts) + " |"


def _fleet(row: dict[str, Any]) -> str:
    times = [row["time_us"][one] for one in conservation.ALGORITHMS]
    cells = " | ".join(f"{us / 1_000:,.3g}" for us in times)
    speedups = f"{row['speedup']['all']:,.3g} | {row['speedup']['level']:,.3g} | {row['speedup_exact']['level']:.3g}"
    return f"| {row['servers']} | {row['tenants']:g} | {cells} | {speedups} | {row['efficiency']['level']:.3f} |"


def growth(rows: Rows) -> str:
    """Whether the speed-ups grow from each fleet to the next."""
    lines = []
    for name, algorithm in (("All-DRF", "all"), ("Level-DRF", "level")):
        fleets = pairwise(row["servers"] for row in rows)
        fallen = [
            f"from {small} to {large} servers (× {grown:.2f})"
            for (small, large), grown in zip(fleets, conservation_goals.steps(rows, algorithm), strict=True)
            if grown < 1
        ]
        lines.append(
            f"{name}'s is not monotone: it falls {', '.join(fallen)}." if fallen else f"{name}'s grows with each fleet."
        )
    return " ".join(lines)
