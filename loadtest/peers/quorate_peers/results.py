"""All measurements of a comparison, each kept in a file as soon as it is made: a run that is stopped can go on."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from quorate_peers.cells import CELLS, Cell, Mode
from quorate_peers.measure import Measured

OURS = "quorate"
WHATS: dict[str, tuple[str, Callable[[Measured], float]]] = {
    "per_s": ("appends/s", lambda cell: cell.per_s),
    "cpu_s_per_m": ("CPU s per million appends", lambda cell: cell.servers_cpu_s_per_m),
    "client_cpu_s_per_m": ("CPU s per million appends", lambda cell: cell.client_cpu_s_per_m),
    "p50_us": ("µs", lambda cell: cell.p50_us),
    "p99_us": ("µs", lambda cell: cell.p99_us),
}
Key = tuple[str, Mode, Cell]


class Results:
    """By peer, mode and cell, in the order of the rounds. `kept`: the file that holds each line by line."""

    def __init__(self, kept: Path | None = None) -> None:
        self._cells: dict[Key, list[Measured]] = defaultdict(list)
        self._kept = kept
        for line in kept.read_text().splitlines() if kept is not None and kept.exists() else []:
            self._take(json.loads(line))

    def _take(self, line: dict[str, Any]) -> None:
        cells = {cell.title: cell for cell in CELLS}
        for title, values in line["cells"].items():
            self._cells[line["peer"], line["mode"], cells[title]].append(Measured(**values))

    def add(self, peer: str, mode: Mode, measured: dict[Cell, Measured]) -> None:
        """One start of one peer, with all its cells: what an interruption leaves of one is not counted."""
        for cell, one in measured.items():
            self._cells[peer, mode, cell].append(one)
        if self._kept is not None:
            self._kept.parent.mkdir(parents=True, exist_ok=True)
            cells = {cell.title: asdict(one) for cell, one in measured.items()}
            with self._kept.open("a") as stream:
                stream.write(json.dumps({"peer": peer, "mode": mode, "cells": cells}) + "\n")

    def rounds(self, peer: str, mode: Mode) -> int:
        """How often the peer was measured in all its cells."""
        return min(len(self._cells[peer, mode, cell]) for cell in CELLS)

    def median(self, peer: str, mode: Mode, cell: Cell, what: str) -> float | None:
        of = WHATS[what][1]
        measured = self._cells.get((peer, mode, cell))
        return median(of(one) for one in measured) if measured else None

    def disturbed(self, peer: str, mode: Mode, cell: Cell) -> float:
        """The greatest share of the machine that others used in one of the windows."""
        return max((one.others_share for one in self._cells[peer, mode, cell]), default=0.0)

    def peers(self) -> list[str]:
        """Those measured, ours first, the others by their names."""
        measured = {key[0] for key, cells in self._cells.items() if cells}
        return sorted(measured, key=lambda peer: (peer != OURS, peer))
