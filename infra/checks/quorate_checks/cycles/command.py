"""`quorate-checks cycles`: prints each import cycle, and fails for those that are not allowed."""

from __future__ import annotations

import argparse
from pathlib import Path

from quorate_checks.cycles import allowed, projects
from quorate_checks.cycles.graph import Loop
from quorate_harness import figures
from quorate_harness.figures import Figure
from quorate_local.display import Display
from quorate_local.options import REPOSITORY

COMMAND = "quorate-checks cycles"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help="print only those of these folders")
    parser.add_argument("--check", action="store_true", help="print only cycles that are not allowed; keep no figure")
    parser.add_argument("--repository", type=Path, default=REPOSITORY, help="another checkout; keeps no figure")
    parser.add_argument("--lower", action="store_true", help="shrink the table of allowed cycles to those of today")


def main(display: Display, chosen: argparse.Namespace) -> int:
    """0 when there are imports, and every cycle of them is in the table of allowed ones."""
    root = chosen.repository.resolve()
    survey = projects.survey(root)
    table = allowed.read()
    new = [one for one in survey.found if not allowed.is_allowed(one, table)]
    for one in new if chosen.check else survey.found:
        if not chosen.packages or one.package in chosen.packages:
            for line in report(one, is_new=one in new):
                display.line(line)
    figure = Figure("import_cycles", len(survey.found), "cycles", 0)
    counts = f"{survey.modules} modules, {survey.imports} imports"
    display.line(f"{counts}: {len(survey.found)} cycles, {len(new)} of them not allowed")
    if not chosen.check and root == REPOSITORY:
        figures.keep([figure], COMMAND, figures.FOLDER / "cycles.jsonl")
    if chosen.lower:
        allowed.write(allowed.lowered(survey.found, table))
    # A survey that saw nothing has shown nothing.
    return int(bool(new) or survey.imports == 0)


def report(found: projects.Found, is_new: bool) -> list[str]:
    """The cycle, and each of its loops as a path of imports with file and line."""
    cycle = found.cycle
    kind = "siblings" if cycle.is_of_siblings else "files"
    mark = "NOT ALLOWED: " if is_new else ""
    lines = [
        f"{mark}{found.package or 'packages'}: {len(cycle.members)} {kind} import one another: {', '.join(found.names)}"
    ]
    for loop in cycle.loops:
        lines.append(f"  loop of {len(loop)}:")
        lines += [f"    {line}" for line in _steps(loop, found.package)]
    return [*lines, ""]


def _steps(loop: Loop, package: str) -> list[str]:
    def short(path: str) -> str:
        return path.removeprefix(f"{package}/")

    return [f"{short(one.source)}:{one.line} → {short(one.target)}   {one.text}" for one in loop]
