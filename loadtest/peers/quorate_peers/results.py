"""All measurements of a comparison, each kept in a file at once: a stopped run can be resumed."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from statistics import median

from quorate_harness.cells import CELLS, Cell, What
from quorate_local.options import REPOSITORY
from quorate_peers.measure import Measured

OURS = "quorate"
OURS_SPINNING = "quorate-spin"
OF_CELL: dict[What, Callable[[Measured], float]] = {
    "per_s": lambda cell: cell.per_s,
    "cpu_s_per_m": lambda cell: cell.servers_cpu_s_per_m,
    "client_cpu_s_per_m": lambda cell: cell.client_cpu_s_per_m,
    "p50_us": lambda cell: cell.p50_us,
    "p99_us": lambda cell: cell.p99_us,
}

# The folders that are built and run, without pages and published results: these change when a run writes its own.
MEASURED = (
    *("Makefile", "services", "migrations", "sdk", "loadtest", "infra"),
    *(":(exclude)loadtest/results", ":(exclude)*.md"),
)


class Results:
    """Measurements by peer and cell, in the order of the repetitions. `kept`: the file with a line for each."""

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

    def repetitions(self, peer: str, cell: Cell) -> int:
        return len(self._cells.get((peer, cell), ()))

    def median(self, peer: str, cell: Cell, what: What) -> float | None:
        measured = self._cells.get((peer, cell))
        return median(OF_CELL[what](one) for one in measured) if measured else None

    def others_share(self, peer: str, cell: Cell) -> float:
        """The greatest share of the machine that others used in one of the counted windows."""
        return max((one.others_share for one in self._cells.get((peer, cell), ())), default=0.0)

    def peers(self) -> list[str]:
        """The measured peers, Quorate first, the others by name."""
        measured = {peer for (peer, _), cells in self._cells.items() if cells}
        return sorted(measured, key=lambda peer: (peer not in (OURS, OURS_SPINNING), peer))


def measured_commit() -> str:
    """The measured commit, with a mark if a file that can change a figure has changed since."""
    head = _git("rev-parse", "--short", "HEAD").stdout.strip() or "unknown"
    return f"{head}{_dirty()}"


def measured_tree() -> str:
    """One name for everything that can change a figure: commits of other files do not separate repetitions."""
    tree = _git("ls-files", "--stage", "--", *MEASURED).stdout + _changes()
    return f"{hashlib.sha256(tree.encode()).hexdigest()[:12]}{_dirty()}"


def _dirty() -> str:
    return "-dirty" if _changes() else ""


def _changes() -> str:
    """Changes of tracked files since the last commit."""
    return _git("diff", "HEAD", "--", *MEASURED).stdout


def _git(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=False)
