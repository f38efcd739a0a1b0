"""Figures that are kept: one line of JSON each, with the command, commit and machine that they were measured with.

The one writer in Python. `loadtest/results/figure.schema.json` describes the lines; `services/crates/figures` writes
the same in Rust.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quorate_harness.evidence import source_of
from quorate_local.display import Display
from quorate_local.options import REPOSITORY

FOLDER = REPOSITORY / "build" / "figures"


@dataclass(frozen=True)
class Figure:
    """`goal`: what it should be at most or, with `more_is_better`, at least; None: it is only reported."""

    name: str
    value: float
    unit: str
    goal: float | None = None
    more_is_better: bool = False
    note: str = ""  # for people; not part of the line
    others_share: float | None = None  # part of the machine that other processes took meanwhile; None: not known

    @property
    def met(self) -> bool | None:
        if self.goal is None:
            return None
        return self.value >= self.goal if self.more_is_better else self.value <= self.goal


def keep(figures: Iterable[Figure], command: str, file: Path, measured_at: str | None = None) -> None:
    """Append the figures to `file`. `measured_at`: the commit, if it is not the present one."""
    circumstances = {"command": command, "commit": measured_at or commit(), "machine": machine()}
    source = None if measured_at else source_of(command)
    if source is not None:
        circumstances["source"] = source
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as stream:
        for figure in figures:
            stream.write(json.dumps(_line(figure, circumstances), ensure_ascii=False) + "\n")


def rewrite(figures: Iterable[Figure], command: str, file: Path, measured_at: str | None = None) -> None:
    """The same, in the place of what `file` held."""
    file.unlink(missing_ok=True)
    keep(figures, command, file, measured_at)


def table(figures: Iterable[Figure]) -> list[str]:
    """For people, in a terminal."""
    rows = [row(figure) for figure in figures]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(5)]
    return ["  " + "  ".join(_padded(row, widths)).rstrip() for row in rows]


def markdown(figures: Iterable[Figure]) -> list[str]:
    """The same as a table for `loadtest/results/`."""
    rows = []
    for figure in figures:
        name, *rest = row(figure)
        rows.append(f"| `{name}` | {' | '.join(rest)} | {figure.note} |")
    return ["| figure | value | unit | goal | | how |", "| --- | ---: | --- | --- | --- | --- |", *rows]


def row(figure: Figure) -> tuple[str, str, str, str, str]:
    """Name, value, unit, goal, and whether it is met, for people."""
    return figure.name, spoken(figure.value), figure.unit, _goal(figure), _judged(figure)


def spoken(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:,.3g}"


def commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def machine() -> str:
    model = _field("/proc/cpuinfo", "model name") or "unknown processor"
    memory_gib = int((_field("/proc/meminfo", "MemTotal") or "0 kB").split()[0]) / (1 << 20)
    return f"{os.cpu_count()} × {model}, {memory_gib:.0f} GiB, Linux {platform.release()}"


def _line(figure: Figure, circumstances: dict[str, str]) -> dict[str, Any]:
    about = {"name": figure.name, "value": round(figure.value, 3), "unit": figure.unit}
    line = {**about, "goal": figure.goal, "met": figure.met, **circumstances}
    return line if figure.others_share is None else {**line, "others_share": round(figure.others_share, 4)}


def _field(path: str, name: str) -> str | None:
    for line in Path(path).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None


def _padded(row: tuple[str, ...], widths: list[int]) -> list[str]:
    """The value to the right, all else to the left."""
    cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)]
    return [cells[0], f"{row[1]:>{widths[1]}}", *cells[2:]]


def _goal(figure: Figure) -> str:
    if figure.goal is None:
        return ""
    return f"{'≥' if figure.more_is_better else '≤'} {spoken(figure.goal)}"


def _judged(figure: Figure) -> str:
    return {None: "", True: "met", False: "MISSED"}[figure.met]


def conclude(figures: list[Figure], seconds: float, display: Display) -> int:
    """Show the figures, and whether every goal was met. Returns the exit code."""
    display.line()
    for line in table(figures):
        display.line(line)
    missed = [figure.name for figure in figures if figure.met is False]
    conclusion = f"MISSED: {', '.join(missed)}." if missed else "Every goal was met."
    display.line(f"\n{conclusion} {seconds:.0f} s.")
    return 1 if missed else 0
