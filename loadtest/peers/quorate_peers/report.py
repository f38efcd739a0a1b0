"""The table that people read, the goals beside it, and the figures that are kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from quorate_local.figures import Figure, commit, machine, markdown
from quorate_peers.cells import CELLS, MODE_NAMES, MODES, Cell, Mode
from quorate_peers.goals import judged
from quorate_peers.peers import PEERS
from quorate_peers.results import OURS, WHATS, Results

COMMAND = "make bench-peers"
HEAD = """# Quorate beside its peers

`{command}` at commit {commit} on {machine}. Medians of {rounds}; three servers and one client on one machine, no TLS
anywhere. A cell: appends/s · p50/p99 · processor seconds of all servers + the client's for a million appends.

"""


def table(results: Results, mode: Mode) -> str:
    """Markdown. A cell: appends/s · p50/p99 µs · processor seconds of servers + client a million appends."""
    lines = [f"### {MODE_NAMES[mode].capitalize()}", ""]
    lines.append("| | " + " | ".join(cell.title for cell in CELLS) + " |")
    lines.append("| --- |" + " --- |" * len(CELLS))
    for peer in results.peers():
        cells = [_cell(results, peer, mode, cell) for cell in CELLS]
        lines.append(f"| {PEERS[peer].title} ({PEERS[peer].modes[mode]}) | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(results: Results, peer: str, mode: Mode, cell: Cell) -> str:
    measured = {what: results.median(peer, mode, cell, what) for what in WHATS}
    values = {what: value for what, value in measured.items() if value is not None}
    if len(values) < len(WHATS):
        return "–"
    mark = " (disturbed)" if results.disturbed(peer, mode, cell) > 0.05 else ""
    return (
        f"{values['per_s']:,.0f}/s · {values['p50_us']:,.0f}/{values['p99_us']:,.0f} µs · "
        f"{values['cpu_s_per_m']:.3g} + {values['client_cpu_s_per_m']:.3g} s{mark}"
    )


def publish(results: Results, folder: Path) -> Path:
    """Write table and figures to `folder`; the table's path."""
    stem = f"{datetime.now(UTC):%Y-%m-%d}-peers"
    folder.mkdir(parents=True, exist_ok=True)
    goals = list(judged(results))
    rounds = {results.rounds(peer, mode) for peer in results.peers() for mode in MODES} or {0}
    said = f"{min(rounds)} rounds" if len(rounds) == 1 else f"{min(rounds)} to {max(rounds)} rounds"
    head = HEAD.format(command=COMMAND, commit=commit(), machine=machine(), rounds=said)
    tables = "\n".join(table(results, mode) for mode in MODES)
    page = folder / f"{stem}.md"
    page.write_text(f"{head}{tables}\n### Goals\n\n" + "\n".join(markdown(goals)) + "\n")
    with_goal = {figure.name for figure in goals}
    plain = (figure for figure in _plain(results) if figure.name not in with_goal)
    with (folder / f"{stem}.jsonl").open("w") as lines:
        for figure in (*goals, *plain):
            lines.write(json.dumps(figure.line(COMMAND), ensure_ascii=False) + "\n")
    return page


def _plain(results: Results) -> Iterator[Figure]:
    """Everything measured, without goals; a peer's with its name in front."""
    for peer in results.peers():
        prefix = "" if peer == OURS else f"{peer}_"
        for mode in MODES:
            for cell in CELLS:
                for what in ("p50_us",) if cell.outstanding == 1 else WHATS:
                    value = results.median(peer, mode, cell, what)
                    if value is not None:
                        yield Figure(prefix + cell.figure(mode, what), value, WHATS[what][0])
