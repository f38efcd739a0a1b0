"""Medians, the table that people read, and the figures that are kept."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from quorate_local.figures import commit, machine
from quorate_peers.cells import CELLS, MODE_NAMES, MODES, Cell, Mode
from quorate_peers.measure import Measured
from quorate_peers.peers import PEERS

COMMAND = "make bench-peers"
OURS = "quorate"
WHATS: dict[str, tuple[str, Callable[[Measured], float]]] = {
    "per_s": ("appends/s", lambda cell: cell.per_s),
    "cpu_s_per_m": ("CPU s per million appends", lambda cell: cell.servers_cpu_s_per_m),
    "p50_us": ("µs", lambda cell: cell.p50_us),
    "p99_us": ("µs", lambda cell: cell.p99_us),
}
Key = tuple[str, Mode, Cell]


class Results:
    """All measurements of a run, by peer, mode and cell."""

    def __init__(self) -> None:
        self._cells: dict[Key, list[Measured]] = defaultdict(list)

    def add(self, peer: str, mode: Mode, cell: Cell, measured: Measured) -> None:
        self._cells[peer, mode, cell].append(measured)

    def median(self, peer: str, mode: Mode, cell: Cell, what: str) -> float | None:
        of = WHATS[what][1]
        measured = self._cells.get((peer, mode, cell))
        return median(of(one) for one in measured) if measured else None

    def disturbed(self, peer: str, mode: Mode, cell: Cell) -> float:
        """The greatest share of the machine that others used in one of the windows."""
        return max((one.others_share for one in self._cells[peer, mode, cell]), default=0.0)

    def peers(self) -> list[str]:
        return [peer for peer in PEERS if any(key[0] == peer for key in self._cells)]


def table(results: Results, mode: Mode) -> str:
    """Markdown. A cell: appends/s · p50/p99 µs · processor seconds of the servers a million appends."""
    peers = results.peers()
    lines = [f"### {MODE_NAMES[mode].capitalize()}", ""]
    lines.append("| | " + " | ".join(cell.title for cell in CELLS) + " |")
    lines.append("| --- |" + " --- |" * len(CELLS))
    for peer in peers:
        cells = [_cell(results, peer, mode, cell) for cell in CELLS]
        lines.append(f"| {PEERS[peer].title} ({PEERS[peer].modes[mode]}) | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(results: Results, peer: str, mode: Mode, cell: Cell) -> str:
    values = [results.median(peer, mode, cell, what) for what in ("per_s", "p50_us", "p99_us", "cpu_s_per_m")]
    if any(value is None for value in values):
        return "–"
    per_s, p50_us, p99_us, cpu = (value or 0.0 for value in values)
    mark = " (disturbed)" if results.disturbed(peer, mode, cell) > 0.05 else ""
    return f"{per_s:,.0f}/s · {p50_us:,.0f}/{p99_us:,.0f} µs · {cpu:.3g} s{mark}"


def publish(results: Results, folder: Path) -> Path:
    """Write table and figures to `folder`; the table's path."""
    known = {"command": COMMAND, "commit": commit(), "machine": machine()}
    stem = f"{datetime.now(UTC):%Y-%m-%d}-peers"
    folder.mkdir(parents=True, exist_ok=True)
    head = (
        f"# Quorate beside its peers\n\n`{COMMAND}` at commit {known['commit']} on {known['machine']}. "
        "Medians; three servers and one client on one machine, no TLS anywhere. "
        "A cell: appends/s · p50/p99 · processor seconds of all servers for a million appends.\n\n"
    )
    page = folder / f"{stem}.md"
    page.write_text(head + "\n".join(table(results, mode) for mode in MODES))
    with (folder / f"{stem}.jsonl").open("w") as lines:
        for peer in results.peers():
            for mode in MODES:
                for cell in CELLS:
                    for line in _figures(results, peer, mode, cell):
                        lines.write(json.dumps({**line, **known}, ensure_ascii=False) + "\n")
    return page


def _figures(results: Results, peer: str, mode: Mode, cell: Cell) -> list[dict[str, object]]:
    whats = ("p50_us",) if cell.outstanding == 1 else tuple(WHATS)
    prefix = "" if peer == OURS else f"{peer}_"
    figures: list[dict[str, object]] = []
    for what in whats:
        value = results.median(peer, mode, cell, what)
        if value is not None:
            name = prefix + cell.figure(mode, what)
            figures.append({"name": name, "value": round(value, 3), "unit": WHATS[what][0], "goal": None, "met": None})
    return figures
