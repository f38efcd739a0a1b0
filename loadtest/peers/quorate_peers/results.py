"""All measurements of a comparison, each kept in a file as soon as it is made: a run that is stopped can go on."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from statistics import median

from quorate_local.options import REPOSITORY
from quorate_peers.measure import Measured
from quorate_scenarios.bench.cells import CELLS, Cell, What

OURS = "quorate"
OURS_SPINNING = "quorate-spin"
OF_CELL: dict[What, Callable[[Measured], float]] = {
    "per_s": lambda cell: cell.per_s,
    "cpu_s_per_m": lambda cell: cell.servers_cpu_s_per_m,
    "client_cpu_s_per_m": lambda cell: cell.client_cpu_s_per_m,
    "p50_us": lambda cell: cell.p50_us,
    "p99_us": lambda cell: cell.p99_us,
}

# What is built and run. Pages and published results are not: a run that wrote its own would not find its rounds again.
MEASURED = (
    *("Makefile", "services", "migrations", "sdk", "loadtest", "infra"),
    *(":(exclude)loadtest/results", ":(exclude)*.md"),
)


class Results:
    """By peer and cell, in the order of the rounds. `kept`: the file that holds each line by line."""

    def __init__(self, kept: Path | None = None) -> None:
        self._cells: dict[tuple[str, Cell], list[Measured]] = defaultdict(list)
        self._kept = kept
        by_key = {cell.key: cell for cell in CELLS}
        for line in kept.read_text().splitlines() if kept is not None and kept.exists() else []:
            said = json.loads(line)
            self._cells[said["peer"], by_key[said["cell"]]].append(Measured(**said["measured"]))

    def add(self, peer: str, cell: Cell, measured: Measured) -> None:
        self._cells[peer, cell].append(measured)
        if self._kept is not None:
            self._kept.parent.mkdir(parents=True, exist_ok=True)
            with self._kept.open("a") as stream:
                line = {"peer": peer, "cell": cell.key, "measured": asdict(measured)}
                stream.write(json.dumps(line) + "\n")

    def rounds(self, peer: str, cell: Cell) -> int:
        return len(self._cells.get((peer, cell), ()))

    def median(self, peer: str, cell: Cell, what: What) -> float | None:
        measured = self._cells.get((peer, cell))
        return median(OF_CELL[what](one) for one in measured) if measured else None

    def others_share(self, peer: str, cell: Cell) -> float:
        """The greatest share of the machine that others used in one of the windows that count."""
        return max((one.others_share for one in self._cells.get((peer, cell), ())), default=0.0)

    def peers(self) -> list[str]:
        """Those measured, ours first, the others by their names."""
        measured = {peer for (peer, _), cells in self._cells.items() if cells}
        return sorted(measured, key=lambda peer: (peer not in (OURS, OURS_SPINNING), peer))


def measured_commit() -> str:
    """What was measured: the commit, and whether anything that can change a figure is changed since."""
    head = _git("rev-parse", "--short", "HEAD").stdout.strip() or "unknown"
    return f"{head}{_dirty()}"


def measured_tree() -> str:
    """All that can change a figure, under one name: other commits between two rounds do not part them."""
    tree = _git("ls-files", "--stage", "--", *MEASURED).stdout + _changes()
    return f"{hashlib.sha256(tree.encode()).hexdigest()[:12]}{_dirty()}"


def _dirty() -> str:
    return "-dirty" if _changes() else ""


def _changes() -> str:
    """Since the last commit, of files that it knows."""
    return _git("diff", "HEAD", "--", *MEASURED).stdout


def _git(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=False)
