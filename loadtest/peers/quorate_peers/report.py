"""The table for people, the goals, the peers' ratios to the peer baseline, and the recorded figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from quorate_harness import figures
from quorate_harness.cells import CELLS, MODE_NAMES, MODES, UNITS, WHATS, WHATS_ALONE, Cell, Mode
from quorate_harness.figures import Figure, machine, markdown
from quorate_harness.peer_baseline import BASELINE
from quorate_harness.quiet import is_disturbed
from quorate_peers.goals import judged
from quorate_peers.peers import PEERS
from quorate_peers.results import OF_CELL, OURS, OURS_SPINNING, Results

COMMAND = "make bench-peers"
FAR_OFF = 1.5  # times slower than the baseline: the peer may lack something it needs
HEAD = """# Quorate beside its peers

`{command}` at commit {commit} on {machine}. Medians of {repetitions}; three servers and one client on one machine, no
TLS anywhere. A cell: appends/s · p50/p99 · processor seconds of all servers + the client's for a million appends · the
greatest share of the machine that other processes used in one of the windows; *disturbed* beyond 5 %.

"""
BESIDE_BASELINE = f"""### Ratios to the peer baseline

Each peer's appends/s (one outstanding: its p50) divided by its earlier result on two idle cores of such a machine.
**Bold**: more than {FAR_OFF:g} times slower than that; check the machine and the peer's setup.

"""


def table(results: Results, mode: Mode) -> str:
    """Markdown, a row for each peer."""
    return _table(results, mode, results.peers(), _cell)


def beside_baseline(results: Results) -> str:
    """Markdown: both modes, each peer's ratio to its baseline."""
    peers = [peer for peer in results.peers() if any(peer == seen for seen, _ in BASELINE)]
    tables = [_table(results, mode, peers, _ratio_to_baseline) for mode in MODES] if peers else []
    return BESIDE_BASELINE + "\n".join(tables) if tables else ""


def _table(results: Results, mode: Mode, peers: list[str], text_of: Callable[[Results, str, Cell], str]) -> str:
    cells = [cell for cell in CELLS if cell.mode == mode]
    lines = [f"#### {MODE_NAMES[mode].capitalize()}", ""]
    lines.append("| | " + " | ".join(cell.load_title for cell in cells) + " |")
    lines.append("| --- |" + " --- |" * len(cells))
    for peer in peers:
        texts = [text_of(results, peer, cell) for cell in cells]
        lines.append(f"| {PEERS[peer].title} ({PEERS[peer].modes[mode]}) | " + " | ".join(texts) + " |")
    return "\n".join(lines) + "\n"


def _cell(results: Results, peer: str, cell: Cell) -> str:
    values = {what: value for what in OF_CELL if (value := results.median(peer, cell, what)) is not None}
    if not values:
        return "–"
    others = results.others_share(peer, cell)
    mark = " *disturbed*" if is_disturbed(others) else ""
    return (
        f"{values['per_s']:,.0f}/s · {values['p50_us']:,.0f}/{values['p99_us']:,.0f} µs · "
        f"{values['cpu_s_per_m']:.3g} + {values['client_cpu_s_per_m']:.3g} s · {others:.1%}{mark}"
    )


def _ratio_to_baseline(results: Results, peer: str, cell: Cell) -> str:
    what = WHATS_ALONE[0] if cell.is_alone else "per_s"
    value, seen = results.median(peer, cell, what), BASELINE.get((peer, cell), {}).get(what)
    if value is None or seen is None:
        return "–"
    ratio = value / seen
    is_far_off = ratio > FAR_OFF if cell.is_alone else ratio < 1 / FAR_OFF
    return f"**{ratio:.2f}**" if is_far_off else f"{ratio:.2f}"


def publish(results: Results, folder: Path, commit: str, missed: list[str]) -> Path:
    """Write table and figures to `folder`; the table's path. `missed`: wanted cells that were not measured."""
    stem = f"{datetime.now(UTC):%Y-%m-%d}-peers"
    folder.mkdir(parents=True, exist_ok=True)
    head = HEAD.format(command=COMMAND, commit=commit, machine=machine(), repetitions=_repetitions(results))
    goals = list(judged(results))
    parts = [head + "\n".join(table(results, mode) for mode in MODES)]
    parts.append("### Goals\n\n" + "\n".join(markdown(goal.marked() for goal in goals)) + "\n")
    parts.append(beside_baseline(results))
    if missed:
        parts.append("### Not measured\n\n" + "\n".join(f"- {one}" for one in missed) + "\n")
    page = folder / f"{stem}.md"
    page.write_text("\n".join(filter(None, parts)))
    with_goal = {goal.figure.name for goal in goals}
    plain = [figure for figure in _plain(results) if figure.name not in with_goal]
    judged_figures = [replace(goal.figure, others_share=goal.others_share) for goal in goals]
    figures.rewrite([*judged_figures, *plain], COMMAND, folder / f"{stem}.jsonl", measured_at=commit)
    return page


def _repetitions(results: Results) -> str:
    measured = ((peer, cell) for peer in results.peers() for cell in CELLS)
    counts = [count for peer, cell in measured if (count := results.repetitions(peer, cell))] or [0]
    if min(counts) == max(counts):
        return f"{counts[0]} repetition{'s' if counts[0] != 1 else ''}"
    return f"{min(counts)} to {max(counts)} repetitions"


def _plain(results: Results) -> Iterator[Figure]:
    """All measured figures, without goals; a peer's with its name in front."""
    for peer in results.peers():
        prefix = "" if peer in (OURS, OURS_SPINNING) else f"{peer}_"
        for cell in CELLS:
            for what in WHATS_ALONE if cell.is_alone else WHATS:
                value = results.median(peer, cell, what)
                if value is not None:
                    name = prefix + cell.figure(what, is_spinning=peer == OURS_SPINNING)
                    yield Figure(name, value, UNITS[what], others_share=results.others_share(peer, cell))
