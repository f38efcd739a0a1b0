"""`make figures`: Figures 5 and 6 of Filo through quorate-alloc, Figure 7 on real servers; plots, JSON and pages to
`docs/papers/filo/`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from quorate_local.display import Display
from quorate_local.figures import FOLDER, Figure, commit, keep, machine, markdown, table
from quorate_local.options import REPOSITORY
from quorate_paper import conservation, figure7, goals, placement, plots
from quorate_paper.instances import profile

COMMAND = "make figures"
PAGE = Path(__file__).parent / "page.txt"
PAGE_7 = Path(__file__).parent / "page7.txt"


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = _arguments(arguments)
    display = Display()
    folder: Path = chosen.publish
    folder.mkdir(parents=True, exist_ok=True)
    figures: list[Figure] = []
    if chosen.only != "fig7":
        figures += _computed(chosen, display, folder)
    if chosen.only in (None, "fig7"):
        figures += _measured(display, folder)
    keep(figures, COMMAND, FOLDER / "filo.jsonl")
    display.line("")
    for line in table(figures):
        display.line(line)
    display.line(f"written to {folder}")
    return 1 if chosen.only == "fig7" and any(figure.met is False for figure in figures) else 0


def _measured(display: Display, folder: Path) -> list[Figure]:
    seen = figure7.run(REPOSITORY / "build" / "fig7", display)
    _write(folder / "figure-7.json", {**asdict(seen), "samples": seen.rows()})
    return publish_seen(seen, folder)


def publish_seen(seen: figure7.Seen, folder: Path) -> list[Figure]:
    figures = list(goals.sharing(seen))
    plots.sharing(seen, folder)
    page = PAGE_7.read_text().format(
        command=f"{COMMAND} ONLY=fig7",
        commit=commit(),
        machine=machine(),
        sla=figure7.SLA_PER_S,
        load=seen.load_average,
        returns=figure7.RETURNS,
        figures="\n".join(markdown(figures)),
    )
    (folder / "figure-7.md").write_text(page)
    return figures


def _computed(chosen: argparse.Namespace, display: Display, folder: Path) -> list[Figure]:
    with display.step("Figure 5: placement"):
        placed = placement.points(range(1, chosen.seeds + 1), chosen.counts)
    with display.step("placement beside an exact solver"):
        optima = placement.against_optimum(range(1, chosen.solved + 1), goals.MOST, chosen.solver_seconds)
    with display.step("placement on 10 000 servers"):
        us_per_replica = placement.at_scale(1, 10_000, 3)
    with display.step("Figure 6: distributed allocation"):
        shared = conservation.points(range(1, chosen.seeds_shared + 1), chosen.counts)
    plots.placement(placed, folder)
    plots.conservation(shared, folder)
    figures = [*goals.placement(placed, optima, us_per_replica), *goals.conservation(shared)]
    _write(folder / "figure-5.json", {"points": [point.row() for point in placed], "optima": optima})
    _write(folder / "figure-6.json", {"points": [point.row() for point in shared]})
    (folder / "README.md").write_text(_page(figures, chosen))
    return figures


def _page(figures: list[Figure], chosen: argparse.Namespace) -> str:
    return PAGE.read_text().format(
        command=COMMAND,
        commit=commit(),
        machine=machine(),
        profile=profile()["version"],
        seeds=chosen.seeds,
        seeds_shared=chosen.seeds_shared,
        counts=", ".join(map(str, chosen.counts)),
        figures="\n".join(markdown(figures)),
    )


def _write(path: Path, what: dict[str, Any]) -> None:
    told = {"command": COMMAND, "commit": commit(), "machine": machine(), "profile": profile()["version"], **what}
    path.write_text(json.dumps(_rounded(told), indent=1) + "\n")


def _rounded(what: Any) -> Any:
    if isinstance(what, float):
        return float(f"{what:.6g}")
    if isinstance(what, dict):
        return {key: _rounded(value) for key, value in what.items()}
    return [_rounded(value) for value in what] if isinstance(what, list) else what


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="quorate-figures", description=__doc__)
    parser.add_argument(
        "--only", choices=["computed", "fig7"], help="what is computed, or what is measured on real servers"
    )
    parser.add_argument("--seeds", type=int, default=10, help="instances of Figure 5 (default %(default)s)")
    parser.add_argument("--seeds-shared", type=int, default=3, help="instances of Figure 6 (default %(default)s)")
    parser.add_argument("--solved", type=int, default=3, help="instances for the exact solver (default %(default)s)")
    parser.add_argument("--solver-seconds", type=float, default=30, help="for each of them (default %(default)s)")
    counts = placement.COUNTS
    parser.add_argument("--counts", type=int, nargs="+", default=counts, help="numbers of applicants, the last is 150")
    parser.add_argument("--publish", type=Path, default=REPOSITORY / "docs" / "papers" / "filo")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
