"""`make bench-peers`: every peer in turn, repeatedly, Quorate among them; a table and figures.

Each peer runs alone, as three processes on loopback. A cell in which other processes used more than 5 % of the machine
is measured again. A cell that cannot be measured is reported at the end, and does not stop the others.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path

from quorate_harness.cells import CELLS, MODES, Cell, Mode
from quorate_harness.figures import table as figures_table
from quorate_harness.quiet import Quiet
from quorate_local.display import Display
from quorate_local.options import REPOSITORY
from quorate_peers.cluster import BUILD, PeerFailed
from quorate_peers.goals import judged
from quorate_peers.measure import Measured, MeasureFailed
from quorate_peers.pace import QUICK, USUAL
from quorate_peers.peers import PEERS
from quorate_peers.peers.peer import Peer
from quorate_peers.report import beside_baseline, publish, table
from quorate_peers.results import Results, measured_commit, measured_tree

REPEATS = 3
ATTEMPTS_MAX = 4
QUIET_WAIT_S = 10.0  # before a disturbed cell is measured again
QUIET_BUDGET_S = 600.0  # for all further attempts: a machine that is never quiet still ends the run
SETTLE_S = 3.0  # a cluster that has just started may have no leader yet
NEEDED = ("go", "java", "javac", "mvn")
RESULTS = REPOSITORY / "loadtest" / "results"


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = _arguments(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # servers are stopped then too
    display, commit = Display(), measured_commit()
    kept = BUILD / f"rounds-{measured_tree()}{'-quick' if chosen.quick else ''}.jsonl"
    if not chosen.resume:
        kept.unlink(missing_ok=True)
    results, failures = Results(kept), list[str]()
    try:
        built = _build(chosen.peers, display, failures)
        quiet = Quiet(1 if chosen.quick else ATTEMPTS_MAX, QUIET_WAIT_S, QUIET_BUDGET_S)
        for turn in _turns(chosen, built, results):
            peer = PEERS[turn.peer]
            title = f"{peer.title}, {turn.mode}, repetition {turn.repetition} of {chosen.repeats}"
            try:
                with display.step(title):
                    for cell, measured in _measure(peer(turn.mode, chosen.pace), turn.cells, quiet):
                        results.add(turn.peer, cell, measured)
            except Exception as error:  # any error: the other peers can still be measured
                failures.append(f"{title}: {type(error).__name__}: {error}")
                display.line(f"  {failures[-1]}")
    except KeyboardInterrupt:
        failures.append("interrupted")
    finally:
        shutil.rmtree(BUILD / "run", ignore_errors=True)
    missed = _missed(chosen, results)
    _report(results, _folder(chosen, results), commit, missed, display)
    for failure in (*failures, *missed):
        display.line(f"not measured: {failure}")
    if failures or missed:
        display.line("\nRESUME=1 measures the missing cells, and keeps the others.")
    return 1 if failures or missed else 0


@dataclass(frozen=True)
class Turn:
    """One start of one peer, and the cells to measure."""

    repetition: int
    mode: Mode
    peer: str
    cells: Sequence[Cell]


def _turns(chosen: argparse.Namespace, peers: Sequence[str], results: Results) -> Iterator[Turn]:
    """All cells that are not measured yet, in the order of the repetitions."""
    done = {(peer, cell): results.repetitions(peer, cell) for peer in peers for cell in CELLS}
    for repetition in range(1, chosen.repeats + 1):
        for mode in MODES:
            for peer in peers:
                wanted = [cell for cell in _cells(chosen, peer) if cell.mode == mode]
                missing = [cell for cell in wanted if repetition > done[peer, cell]]
                if missing:
                    yield Turn(repetition, mode, peer, missing)


def _cells(chosen: argparse.Namespace, peer: str) -> list[Cell]:
    return [cell for cell in PEERS[peer].cells if cell in chosen.cells]


def _missed(chosen: argparse.Namespace, results: Results) -> list[str]:
    counts = {(peer, cell): results.repetitions(peer, cell) for peer in chosen.peers for cell in _cells(chosen, peer)}
    return [
        f"{peer} {cell.key}: {count} of {chosen.repeats} repetitions"
        for (peer, cell), count in counts.items()
        if count < chosen.repeats
    ]


def _folder(chosen: argparse.Namespace, results: Results) -> Path:
    """Only a result with every cell of every peer replaces the published one."""
    is_whole = all(results.repetitions(name, cell) for name, peer in PEERS.items() for cell in peer.cells)
    folder: Path | None = chosen.publish
    return folder or (RESULTS if is_whole and not chosen.quick else BUILD)


def _report(results: Results, folder: Path, commit: str, missed: list[str], display: Display) -> None:
    if not results.peers():
        return
    display.line("")
    for mode in MODES:
        display.line(table(results, mode))
    goals = list(judged(results))
    for line in figures_table(goal.figure for goal in goals):
        display.line(line)
    disturbed = [goal.figure.name for goal in goals if goal.is_disturbed]
    if disturbed:
        display.line(f"\njudged on disturbed windows: {', '.join(disturbed)}")
    display.line(f"\n{beside_baseline(results)}")
    display.line(f"written to {publish(results, folder, commit, missed)}")


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="quorate-bench-peers", description=__doc__)
    names = f"peers ({', '.join(PEERS)}) and cells ({', '.join(cell.key for cell in CELLS)}; or '*_out1')"
    parser.add_argument("--only", default="", metavar="NAMES", help=f"{names}, with commas")
    parser.add_argument(
        "--repeats", type=int, default=REPEATS, help="repetitions; the median counts (default %(default)s)"
    )
    parser.add_argument("--resume", action="store_true", help="keep what was measured of this code, and go on")
    parser.add_argument("--quick", action="store_true", help="windows of a second, hardly warmed: does it work?")
    parser.add_argument("--publish", type=Path, help=f"folder of table and figures (whole: {RESULTS}, else {BUILD})")
    chosen = parser.parse_args(arguments)
    try:
        chosen.peers, chosen.cells = choose(chosen.only)
    except ValueError as error:
        parser.error(str(error))
    if not 1 <= chosen.repeats <= 100:
        parser.error("--repeats must be 1 to 100")
    chosen.pace = QUICK if chosen.quick else USUAL
    return chosen


def choose(only: str) -> tuple[list[str], list[Cell]]:
    """The peers and cells of a list; without a peer all peers, without a cell all cells. A cell may be a pattern."""
    names = only.replace(",", " ").split()
    peers = [peer for peer in PEERS if peer in names]
    patterns = [name for name in names if name not in PEERS]
    for pattern in patterns:
        if not any(fnmatch(cell.key, pattern) for cell in CELLS):
            raise ValueError(f"{pattern} is neither a peer nor a cell")
    cells = [cell for cell in CELLS if not patterns or any(fnmatch(cell.key, pattern) for pattern in patterns)]
    return peers or list(PEERS), cells


def _build(names: Sequence[str], display: Display, failures: list[str]) -> list[str]:
    """The peers that could be built."""
    for tool in NEEDED:
        if shutil.which(tool) is None:
            display.line(f"  {tool} was not found: peers that need it cannot be built")
    built = []
    for name in names:
        try:
            with display.step(f"building {PEERS[name].title}"):
                PEERS[name].build()
            built.append(name)
        except (PeerFailed, OSError) as error:
            failures.append(f"{name}: {error}")
    return built


def _measure(peer: Peer, cells: Sequence[Cell], quiet: Quiet) -> Iterator[tuple[Cell, Measured]]:
    try:
        peer.start()
        for cell in cells:
            yield cell, undisturbed(peer, cell, quiet)
    finally:
        peer.stop()


def undisturbed(peer: Peer, cell: Cell, quiet: Quiet) -> Measured:
    """The attempt with the least disturbance."""
    _warm(peer, cell)
    best, attempts = quiet.least_disturbed(lambda: _try(peer, cell))
    return replace(best, attempts=attempts)


def _try(peer: Peer, cell: Cell) -> Measured:
    """Replace a failed client once, and warm the new one."""
    try:
        return peer.measure(cell)
    except MeasureFailed:
        _warm(peer, cell)
        return peer.measure(cell)


def _warm(peer: Peer, cell: Cell) -> None:
    try:
        peer.warm(cell)
    except MeasureFailed:
        time.sleep(SETTLE_S)
        peer.warm(cell)


if __name__ == "__main__":
    sys.exit(main())
