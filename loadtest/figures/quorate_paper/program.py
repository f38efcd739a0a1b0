"""`make figures`: Figures 5 and 6 of Filo through quorate-alloc, Figure 7 on real servers, Figure 3 of what
`make profile` measured; plots, JSON and pages to `docs/papers/filo/`."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

from quorate_local.display import Display
from quorate_local.figures import FOLDER, Figure, commit, keep, machine, markdown, table
from quorate_local.options import REPOSITORY
from quorate_paper import conservation, costs, figure7, goals, placement, plots, profiles, runs, seen

COMMAND = "make figures"
PUBLISHED = REPOSITORY / "docs" / "papers" / "filo"
PAGE = Path(__file__).parent / "page.txt"
PAGE_7 = Path(__file__).parent / "page7.txt"
RUNS_MAX = 5  # whose samples are less than a million bytes, which is as large as a file may be


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = _arguments(arguments)
    display = Display()
    folder: Path = chosen.publish
    if folder == PUBLISHED and changes():
        display.line("The work tree has changes, and what is published names a commit: commit, or choose --publish.")
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    if chosen.only == "fig3":
        return _figure_3(chosen.cells, folder, display)
    figures: list[Figure] = []
    if chosen.only != "fig7":
        figures += _computed(chosen, display, folder)
    if chosen.only in (None, "fig7"):
        figures += _measured(chosen.runs, display, folder)
    keep(figures, COMMAND, FOLDER / "filo.jsonl")
    display.line("")
    for line in table(figures):
        display.line(line)
    display.line(f"written to {folder}")
    return judged(figures)


def judged(figures: list[Figure]) -> int:
    """The exit code: 1 whenever a goal is missed, whatever was run."""
    return 1 if any(figure.met is False for figure in figures) else 0


def changes() -> str:
    """To files of the repository, but for what was published before."""
    besides = f":!{PUBLISHED.relative_to(REPOSITORY)}"
    command = ["git", "status", "--porcelain", "--untracked-files=no", "--", ".", besides]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False).stdout.strip()


def named_commit() -> str:
    """Without the mark of changes when only what is published has some."""
    return commit() if changes() else commit().removesuffix("-dirty")


def _measured(count: int, display: Display, folder: Path) -> list[Figure]:
    display.line(f"Figure 7: {count} runs of {figure7.RUN_S / 60:.1f} minutes each; disturbed ones are repeated.")

    def run() -> seen.Seen:
        return figure7.run(REPOSITORY / "build" / "fig7", display)

    return publish_runs(runs.measure(count, run, display.line), folder)


def publish_runs(attempts: list[runs.Attempt], folder: Path) -> list[Figure]:
    """The plot is of the first run that counts; all else of all of them."""
    spreads = runs.spreads(attempts)
    counted = [one for one in attempts if one.counts]
    plots.sharing(counted[0].seen, folder)
    page = PAGE_7.read_text().format(
        command=f"{COMMAND} ONLY=fig7 RUNS={len(counted)}",
        commit=named_commit(),
        machine=machine(),
        runs=len(counted),
        told=runs.told(attempts),
        disturbed=runs.disturbed(attempts),
        control_max=f"{runs.CONTROL_MAX:.0%}",
        repeats=runs.REPEATS_MAX,
        part=f"{figure7.SLA_PART:.0%}",
        outstanding=figure7.OUTSTANDING,
        more_outstanding=figure7.MORE_OUTSTANDING,
        flood_outstanding=figure7.FLOOD_OUTSTANDING,
        within=f"{seen.WITHIN_PART:.0%}",
        back=f"{seen.BACK_PART:.0%}",
        returns=figure7.RETURNS,
        brief_returns=figure7.BRIEF_RETURNS,
        profile=" and ".join(dict.fromkeys(profiles.told(one.seen.profile) for one in attempts)),
        figures=runs.table(spreads),
    )
    (folder / "figure-7.md").write_text(page)
    told = _rounded(
        {
            **_about(counted[0].seen.profile),
            "figures": [one.told() for one in spreads],
            "runs": [one.told() for one in attempts],
        }
    )
    # A line for each sample: what is published may have a million bytes, and changes are to be read.
    (folder / "figure-7.json").write_text(json.dumps(told, separators=(",", ":")).replace("],[", "],\n[") + "\n")
    return [one.figure for one in spreads]


def _computed(chosen: argparse.Namespace, display: Display, folder: Path) -> list[Figure]:
    def told(text: str) -> None:
        display.progress(f"  {text} …")

    seeds, few = range(1, chosen.seeds + 1), range(1, chosen.seeds_larger + 1)
    with display.step("Figure 5: placement"):
        placed = placement.points(seeds, chosen.counts, told)
    with display.step("placement of other kinds of applicants"):
        kinds = placement.kinds(seeds, goals.MOST, told)
    with display.step("placement beside an exact solver"):
        solved = range(1, chosen.solved + 1)
        optima = placement.against_optimum(solved, chosen.solved_applicants, chosen.solver_seconds, told)
    with display.step("placement on 100, 1 000 and 10 000 servers"):
        us_per_replica = {count: placement.at_scale(1, count, 3) for count in placement.SCALES}
    with display.step("Figure 6: distributed allocation"):
        many_seeds = range(1, chosen.seeds_shared + 1)
        shared = conservation.points(many_seeds, chosen.counts, chosen.seeds_dear, told)
        demanded = conservation.by_demand(few, goals.MOST, told)
    with display.step("Figure 6: larger fleets, many tenants"):
        fleets = conservation.by_fleet(many_seeds, len(few), chosen.seeds_dear, told=told)
        many = conservation.many_tenants(1, 5)
    plots.placement(placed, folder)
    plots.conservation(shared, folder)
    figures = [
        *goals.placement(placed, kinds, optima, us_per_replica),
        *goals.conservation(shared),
        *goals.bounded(demanded),
        *goals.growth(fleets),
        goals.many(many),
    ]
    _write(folder / "figure-5.json", {"points": [point.row() for point in placed], "kinds": kinds, "optima": optima})
    _write(
        folder / "figure-6.json",
        {"points": [point.row() for point in shared], "by_demand": demanded, "by_fleet": fleets, "many": many},
    )
    (folder / "README.md").write_text(_page(figures, kinds, demanded, fleets, chosen))
    return figures


def _figure_3(cells: Path, folder: Path, display: Display) -> int:
    try:
        measured = costs.read(cells)
    except (OSError, ValueError) as error:
        display.line(f"{cells} cannot be used: {error}. `make profile` writes it.")
        return 1
    plots.costs(costs.points(measured), folder)
    (folder / "figure-3.json").write_text(json.dumps(_rounded(measured), indent=1) + "\n")
    (folder / "figure-3.md").write_text(costs.page(measured))
    display.line(f"written to {folder}")
    return 0


Rows: TypeAlias = list[dict[str, Any]]


def _page(figures: list[Figure], kinds: Rows, demanded: Rows, fleets: Rows, chosen: argparse.Namespace) -> str:
    profile = profiles.chosen()
    return PAGE.read_text().format(
        command=COMMAND,
        commit=named_commit(),
        machine=machine(),
        profile=profiles.told(profile.about(), profile.instead_of),
        safety_factor=f"{profile.safety_factor:.0%}",
        seeds=chosen.seeds,
        seeds_shared=chosen.seeds_shared,
        seeds_dear=chosen.seeds_dear,
        seeds_larger=chosen.seeds_larger,
        solved_applicants=chosen.solved_applicants,
        solved_servers=placement.SOLVED_SERVERS,
        rounds=chosen_rounds(figures),
        counts=", ".join(map(str, chosen.counts)),
        figures="\n".join(markdown(figures)),
        kinds="\n".join(
            f"| {row['kind']} | {row['order']} | {row['filo']:.3f} | {row['shape']:.3f} |" for row in kinds
        ),
        demands="\n".join(_demand(demand, demanded) for demand in conservation.DEMANDS),
        fleets="\n".join(_fleet(row) for row in fleets),
        growth=_growth(fleets),
    )


def chosen_rounds(figures: list[Figure]) -> str:
    return next(f"{figure.value:g}" for figure in figures if figure.name == "leveldrf_rounds")


def _demand(demand: float | None, rows: Rows) -> str:
    chosen = [row["efficiency"] for row in rows if row["demand"] == demand]
    parts = [median(row[one] for row in chosen) for one in ("head", "all", "level")]
    wanted = "all there is" if demand is None else f"{demand:g} × its reservation"
    return f"| {wanted} | " + " | ".join(f"{part:.3f}" for part in parts) + " |"


def _fleet(row: dict[str, Any]) -> str:
    times = [row["time_us"][one] for one in conservation.ALGORITHMS]
    told = " | ".join(f"{us / 1_000:,.3g}" for us in times)
    speedups = f"{row['speedup']['all']:,.3g} | {row['speedup']['level']:,.3g}"
    return f"| {row['servers']} | {row['tenants']:g} | {told} | {speedups} | {row['efficiency']['level']:.3f} |"


def _growth(rows: Rows) -> str:
    """Whether the speed-ups grow from each fleet to the next."""
    told = []
    for name, algorithm in (("All-DRF", "all"), ("Level-DRF", "level")):
        fleets = pairwise(row["servers"] for row in rows)
        fallen = [
            f"from {small} to {large} servers (× {grown:.2f})"
            for (small, large), grown in zip(fleets, goals.steps(rows, algorithm), strict=True)
            if grown < 1
        ]
        told.append(
            f"{name}'s is not monotone: it falls {', '.join(fallen)}." if fallen else f"{name}'s grows with each fleet."
        )
    return " ".join(told)


def _write(path: Path, what: dict[str, Any]) -> None:
    path.write_text(json.dumps(_rounded({**_about(profiles.chosen().about()), **what}), indent=1) + "\n")


def _about(profile: dict[str, Any]) -> dict[str, Any]:
    return {"command": COMMAND, "commit": named_commit(), "machine": machine(), "profile": profile}


def _rounded(what: Any) -> Any:
    if isinstance(what, float):
        return float(f"{what:.6g}")
    if isinstance(what, dict):
        return {key: _rounded(value) for key, value in what.items()}
    return [_rounded(value) for value in what] if isinstance(what, list) else what


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="quorate-figures", description=__doc__)
    parser.add_argument(
        "--only",
        choices=["fig3", "computed", "fig7"],
        help="what `make profile` measured, what is computed, or real servers",
    )
    run_s, again = figure7.RUN_S, runs.REPEATS_MAX
    parser.add_argument(
        "--runs",
        type=int,
        default=3,
        help=f"of Figure 7, {run_s} s each; medians count (default %(default)s). A run that the machine disturbed is "
        f"repeated, {again} times at most",
    )
    parser.add_argument("--seeds", type=int, default=20, help="instances of Figure 5 (default %(default)s)")
    parser.add_argument("--seeds-shared", type=int, default=20, help="instances of Figure 6 (default %(default)s)")
    dear = "of them, in which C-DRF, Head-DRF and All-DRF count requests (default %(default)s)"
    parser.add_argument("--seeds-dear", type=int, default=8, help=dear)
    parser.add_argument("--seeds-larger", type=int, default=2, help="of each demand, and so in larger fleets")
    parser.add_argument("--solved", type=int, default=10, help="instances for the exact solver (default %(default)s)")
    parser.add_argument("--solved-applicants", type=int, default=16, help="of each of them (default %(default)s)")
    parser.add_argument("--solver-seconds", type=float, default=6, help="for each of them (default %(default)s)")
    counts = placement.COUNTS
    parser.add_argument("--counts", type=int, nargs="+", default=counts, help="numbers of applicants, the last is 150")
    parser.add_argument("--cells", type=Path, default=costs.CELLS, help="what Figure 3 plots (default %(default)s)")
    parser.add_argument("--publish", type=Path, default=PUBLISHED)
    chosen = parser.parse_args(arguments)
    if not 1 <= chosen.runs <= RUNS_MAX:
        parser.error(f"--runs must be 1 to {RUNS_MAX}")
    return chosen


if __name__ == "__main__":
    sys.exit(main())
