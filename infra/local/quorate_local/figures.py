"""Figures that are kept: one line of JSON each, with the command, commit and machine that they were measured with.

The same form as the load driver's (`services/crates/figures`), in `build/figures/`.
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

from quorate_local.options import REPOSITORY

FOLDER = REPOSITORY / "build" / "figures"


@dataclass(frozen=True)
class Figure:
    """`goal`: what it should be at most or, with `more_is_better`, at least; None: it is only told."""

    name: str
    value: float
    unit: str
    goal: float | None = None
    more_is_better: bool = False
    note: str = ""  # for people; not part of the line

    @property
    def met(self) -> bool | None:
        if self.goal is None:
            return None
        return self.value >= self.goal if self.more_is_better else self.value <= self.goal

    def line(self, command: str) -> dict[str, Any]:
        return {
            "name": self.name,
            "value": round(self.value, 3),
            "unit": self.unit,
            "goal": self.goal,
            "met": self.met,
            "command": command,
            "commit": commit(),
            "machine": machine(),
        }


def keep(figures: Iterable[Figure], command: str, file: Path) -> None:
    """Append the figures to `file`."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as stream:
        for figure in figures:
            stream.write(json.dumps(figure.line(command), ensure_ascii=False) + "\n")


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
