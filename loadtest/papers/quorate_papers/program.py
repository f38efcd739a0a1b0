"""`make figures`: Figures 5 and 6 of Filo through quorate-planner, Figure 7 on real servers, Figure 3 of what
`make profile` measured, Figure 16 of Pulsar, and sharing in large fleets. Plots and pages go to `docs/papers/`,
figures to `loadtest/results/`, what the plots are made of to `build/papers/`: the same command makes it again."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from quorate_harness.figures import FOLDER, Figure, commit, keep, machine, markdown, rewrite, table
from quorate_local.display import Display
from quorate_local.options import REPOSITORY
from quorate_papers import (
    capacity,
    computed,
    costs,
    figure7,
    guaranteed,
    page,
    pisces,
    placement,
    plots,
    profiles,
    pulsar,
    runs,
    seen,
    sharing,
)

COMMAND = "make figures"
PUBLISHED = REPOSITORY / "docs" / "papers" / "filo"
PULSAR = REPOSITORY / "docs" / "papers" / "pulsar"
PISCES = REPOSITORY / "docs" / "papers" / "pisces"
RESULTS = REPOSITORY / "loadtest" / "results"
DATA = REPOSITORY / "build" / "papers"
PAGE_7 = Path(__file__).parent / "page7.txt"
RUNS_MAX = 5  # an hour, if each is repeated


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
    if chosen.only == "capacity":
        return _capacity(PULSAR if folder == PUBLISHED else folder, display)
    if chosen.only == "guarantee":
        return _guarantee(PULSAR if folder == PUBLISHED else folder, display)
    if chosen.only == "pisces":
        return _pisces(PISCES if folder == PUBLISHED else folder, display)
    if chosen.only in ("pulsar", "sharing"):
        make = _pulsar if chosen.only == "pulsar" else _sharing
        return make(PULSAR if folder == PUBLISHED else folder, display)
    figures: list[Figure] = []
    if chosen.only != "fig7":
        figures += _computed(chosen, display, folder)
    if chosen.only in (None, "fig7"):
        figures += _measured(chosen.runs, display, folder, chosen.data)
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
    besides = [f":!{folder.relative_to(REPOSITORY)}" for folder in (PUBLISHED, PULSAR, PISCES, RESULTS)]
    command = ["git", "status", "--porcelain", "--untracked-files=no", "--", ".", *besides]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False).stdout.strip()


def named_commit() -> str:
    """Without the mark of changes when only what is published has some."""
    return commit() if changes() else commit().removesuffix("-dirty")


def keep_figures(figures: list[Figure], name: str, command: str, folder: Path) -> None:
    """With all that are kept; in the project's results too, if `folder` is where the project publishes."""
    keep(figures, command, FOLDER / "filo.jsonl", named_commit())
    if folder == PUBLISHED:
        rewrite(figures, command, RESULTS / f"{datetime.now(UTC):%Y-%m-%d}-{name}.jsonl", named_commit())


def _measured(count: int, display: Display, folder: Path, data: Path) -> list[Figure]:
    display.line(f"Figure 7: {count} runs of {figure7.RUN_S / 60:.1f} minutes each; disturbed ones are repeated.")

    def run() -> seen.Seen:
        return figure7.run(REPOSITORY / "build" / "fig7", display)

    figures = publish_runs(runs.measure(count, run, display.line), folder, data)
    keep_figures(figures, "filo-figure-7", f"{COMMAND} ONLY=fig7 RUNS={count}", folder)
    return figures


def publish_runs(attempts: list[runs.Attempt], folder: Path, data: Path) -> list[Figure]:
    """The plot is of the first run that counts; all else of all of them."""
    spreads = runs.spreads(attempts)
    counted = [one for one in attempts if one.counts]
    plots.sharing(counted[0].seen, folder)
    text = costs.banner(PAGE_7) + PAGE_7.read_text().format(
        command=f"{COMMAND} ONLY=fig7 RUNS={len(counted)}",
        commit=named_commit(),
        machine=machine(),
        runs=len(counted),
        runs_table=runs.rows(attempts),
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
        profile=" and ".join(dict.fromkeys(profiles.described(one.seen.profile) for one in attempts)),
        figures=runs.table(spreads),
    )
    (folder / "figure-7.md").write_text(text)
    document = {"figures": [one.document() for one in spreads], "runs": [one.document() for one in attempts]}
    _write(data / "figure-7.json", counted[0].seen.profile, document)
    return [one.figure for one in spreads]


def _computed(chosen: argparse.Namespace, display: Display, folder: Path) -> list[Figure]:
    done = computed.compute(chosen, display)
    figures = list(done.figures())
    plots.placement(done.placed, folder / "figure-5")
    plots.placement(done.placed_testbed, folder / "figure-5-testbed", is_papers=True)
    plots.conservation(done.shared, folder / "figure-6")
    plots.conservation(done.shared_testbed, folder / "figure-6-testbed", is_papers=True)
    for name, rows in done.data().items():
        _write(chosen.data / f"{name}.json", profiles.chosen().about(), rows)
    keep_figures(figures, "filo", f"{COMMAND} ONLY=computed", folder)
    (folder / "README.md").write_text(page.page(done, figures, chosen, COMMAND, named_commit()))
    return figures


def _pulsar(folder: Path, display: Display) -> int:
    display.line("Figure 16 of Pulsar: datacenters of 3 000 to 24 000 flows, about a minute.")
    points = pulsar.measure()
    figures, command = pulsar.figures(points), f"{COMMAND} ONLY=pulsar"
    folder.mkdir(parents=True, exist_ok=True)
    plots.allocation_times(points, folder / "figure-16")
    text = pulsar.page(points, command, named_commit(), machine(), markdown(figures))
    return _publish_page(folder / "README.md", text, figures, "pulsar", command, display)


def _capacity(folder: Path, display: Display) -> int:
    def plot() -> None:
        plots.capacity(capacity.traces(), folder / "figure-14")

    return _plotted(plot, capacity.FIRST, folder, display)


def _guarantee(folder: Path, display: Display) -> int:
    def plot() -> None:
        plots.guaranteed(guaranteed.trace(), folder / "figure-12")

    return _plotted(plot, guaranteed.FIRST, folder, display)


def _pisces(folder: Path, display: Display) -> int:
    def plot() -> None:
        traces = pisces.traces()
        plots.tenants(traces, folder / "figure-5")
        plots.tenants_latencies(traces[4], folder / "figure-7")

    return _plotted(plot, pisces.FIRST, folder, display)


def _plotted(plot: Callable[[], None], first: str, folder: Path, display: Display) -> int:
    """Plots of traces that the command `first` leaves. The exit code."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        plot()
    except FileNotFoundError:
        display.line(f"There is nothing to plot yet: run {first} first.")
        return 1
    display.line(f"written to {folder}")
    return 0


def _sharing(folder: Path, display: Display) -> int:
    display.line("Sharing in fleets of 1 000 and 10 000 servers: about five minutes.")
    measured = sharing.measure(display.line)
    figures, command = sharing.figures(measured), f"{COMMAND} ONLY=sharing"
    text = sharing.page(measured, command, named_commit(), machine(), markdown(figures))
    return _publish_page(folder / "sharing.md", text, figures, "sharing", command, display)


def _publish_page(page: Path, text: str, figures: list[Figure], name: str, command: str, display: Display) -> int:
    """Write the page and keep its figures; among the results, too, where the project publishes. The exit code."""
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(text)
    keep(figures, command, FOLDER / f"{name}.jsonl", named_commit())
    if page.parent == PULSAR:
        rewrite(figures, command, RESULTS / f"{datetime.now(UTC):%Y-%m-%d}-{name}.jsonl", named_commit())
    for line in table(figures):
        display.line(line)
    display.line(f"written to {page.parent}")
    return judged(figures)


def _figure_3(cells: Path, folder: Path, display: Display) -> int:
    try:
        measured = costs.read(cells)
    except (OSError, ValueError) as error:
        display.line(f"{cells} cannot be used: {error}. `make profile` writes it.")
        return 1
    plots.costs(costs.points(measured), folder)
    (folder / "figure-3.md").write_text(costs.page(measured))
    display.line(f"written to {folder}")
    return 0


def _write(path: Path, profile: dict[str, Any], what: dict[str, Any]) -> None:
    about = {"command": COMMAND, "commit": named_commit(), "machine": machine(), "profile": profile}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(_rounded({**about, **what}), indent=1) + "\n")


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
        choices=["fig3", "computed", "fig7", "pulsar", "sharing", "capacity", "guarantee", "pisces"],
        help="what `make profile` measured, what is computed, real servers, Figure 16 of Pulsar, large fleets, or what "
        "`make claims ONLY=capacity`, `guarantee` or `partitions` measured",
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
    parser.add_argument(
        "--seeds-larger", type=int, default=2, help="with All-DRF in larger fleets (default %(default)s)"
    )
    parser.add_argument("--solved", type=int, default=10, help="instances for the exact solver (default %(default)s)")
    parser.add_argument("--solved-applicants", type=int, default=16, help="of each of them (default %(default)s)")
    parser.add_argument("--solver-seconds", type=float, default=6, help="for each of them (default %(default)s)")
    counts = placement.COUNTS
    parser.add_argument("--counts", type=int, nargs="+", default=counts, help="numbers of applicants, the last is 150")
    parser.add_argument("--cells", type=Path, default=costs.CELLS, help="what Figure 3 plots (default %(default)s)")
    parser.add_argument("--publish", type=Path, default=PUBLISHED, help="folder of plots and pages (%(default)s)")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of what plots are made of (%(default)s)")
    chosen = parser.parse_args(arguments)
    if not 1 <= chosen.runs <= RUNS_MAX:
        parser.error(f"--runs must be 1 to {RUNS_MAX}")
    return chosen


if __name__ == "__main__":
    sys.exit(main())
