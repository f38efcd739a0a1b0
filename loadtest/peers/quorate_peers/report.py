"""The table that people read, the goals beside it, how far peers are from what was seen, and the figures kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from quorate_local.figures import Figure, machine, markdown
from quorate_peers.goals import judged
from quorate_peers.peers import PEERS
from quorate_peers.results import OF_CELL, OURS, OURS_SPINNING, Results
from quorate_scenarios.bench.cells import CELLS, MODE_NAMES, MODES, UNITS, WHATS, WHATS_ALONE, Cell, Mode
from quorate_scenarios.bench.quiet import is_disturbed
from quorate_scenarios.bench.seen import SEEN

COMMAND = "make bench-peers"
FAR_OFF = 1.5  # times slower than seen before: worth a look at what the peer was given
HEAD = """# Quorate beside its peers

`{command}` at commit {commit} on {machine}. Medians of {rounds}; three servers and one client on one machine, no TLS
anywhere. A cell: appends/s · p50/p99 · processor seconds of all servers + the client's for a million appends · the most
that other processes used of the machine in one of the windows; *disturbed* beyond 5 %.

"""
BESIDE_SEEN = f"""### Beside what was seen before

Each peer's appends/s (one outstanding: its p50) divided by what it reached before on two idle cores of such a machine.
**Bold**: more than {FAR_OFF:g} times slower than seen, so that the machine, or what the peer was given, wants a look.

"""


def table(results: Results, mode: Mode) -> str:
    """Markdown, a row for each peer."""
    return _table(results, mode, results.peers(), _cell)


def beside_seen(results: Results) -> str:
    """Markdown: both modes, each peer's ratio to what was seen of it."""
    peers = [peer for peer in results.peers() if any(peer == seen for seen, _ in SEEN)]
    tables = [_table(results, mode, peers, _ratio_to_seen) for mode in MODES] if peers else []
    return BESIDE_SEEN + "\n".join(tables) if tables else ""


def _table(results: Results, mode: Mode, peers: list[str], tell: Callable[[Results, str, Cell], str]) -> str:
    cells = [cell for cell in CELLS if cell.mode == mode]
    lines = [f"#### {MODE_NAMES[mode].capitalize()}", ""]
    lines.append("| | " + " | ".join(cell.load_title for cell in cells) + " |")
    lines.append("| --- |" + " --- |" * len(cells))
    for peer in peers:
        texts = [tell(results, peer, cell) for cell in cells]
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


def _ratio_to_seen(results: Results, peer: str, cell: Cell) -> str:
    what = WHATS_ALONE[0] if cell.is_alone else "per_s"
    value, seen = results.median(peer, cell, what), SEEN.get((peer, cell), {}).get(what)
    if value is None or seen is None:
        return "–"
    ratio = value / seen
    is_far_off = ratio > FAR_OFF if cell.is_alone else ratio < 1 / FAR_OFF
    return f"**{ratio:.2f}**" if is_far_off else f"{ratio:.2f}"


def publish(results: Results, folder: Path, commit: str, missed: list[str]) -> Path:
    """Write table and figures to `folder`; the table's path. `missed`: what was to be measured, and was not."""
    stem = f"{datetime.now(UTC):%Y-%m-%d}-peers"
    folder.mkdir(parents=True, exist_ok=True)
    head = HEAD.format(command=COMMAND, commit=commit, machine=machine(), rounds=_rounds(results))
    goals = list(judged(results))
    parts = [head + "\n".join(table(results, mode) for mode in MODES)]
    parts.append("### Goals\n\n" + "\n".join(markdown(goal.told() for goal in goals)) + "\n")
    parts.append(beside_seen(results))
    if missed:
        parts.append("### Not measured\n\n" + "\n".join(f"- {one}" for one in missed) + "\n")
    page = folder / f"{stem}.md"
    page.write_text("\n".join(filter(None, parts)))
    with_goal = {goal.figure.name for goal in goals}
    plain = [(figure, others) for figure, others in _plain(results) if figure.name not in with_goal]
    with (folder / f"{stem}.jsonl").open("w") as lines:
        for figure, others in [*((goal.figure, goal.others_share) for goal in goals), *plain]:
            line = {**figure.line(COMMAND), "commit": commit, "others_share": round(others, 4)}
            lines.write(json.dumps(line, ensure_ascii=False) + "\n")
    return page


def _rounds(results: Results) -> str:
    rounds = [count for peer in results.peers() for cell in CELLS if (count := results.rounds(peer, cell))] or [0]
    if min(rounds) == max(rounds):
        return f"{rounds[0]} round{'s' if rounds[0] != 1 else ''}"
    return f"{min(rounds)} to {max(rounds)} rounds"


def _plain(results: Results) -> Iterator[tuple[Figure, float]]:
    """Everything measured, without goals; a peer's with its name in front."""
    for peer in results.peers():
        prefix = "" if peer in (OURS, OURS_SPINNING) else f"{peer}_"
        for cell in CELLS:
            for what in WHATS_ALONE if cell.is_alone else WHATS:
                value = results.median(peer, cell, what)
                if value is not None:
                    name = prefix + cell.figure(what, is_spinning=peer == OURS_SPINNING)
                    yield Figure(name, value, UNITS[what]), results.others_share(peer, cell)
