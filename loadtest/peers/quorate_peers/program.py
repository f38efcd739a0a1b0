"""`make bench-peers`: every peer in turn, several times round, Quorate among them; a table and figures.

Each peer runs as three processes on loopback with nothing beside it. A cell in which other processes
used more than 5 % of the machine is measured again.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from quorate_local.display import Display
from quorate_local.figures import commit
from quorate_local.figures import table as figures_table
from quorate_local.options import REPOSITORY
from quorate_peers.cells import CELLS, MODES, Cell, Mode
from quorate_peers.cluster import BUILD, PeerFailed
from quorate_peers.goals import judged
from quorate_peers.measure import Measured, MeasureFailed
from quorate_peers.peers import PEERS
from quorate_peers.peers.peer import Peer
from quorate_peers.report import publish, table
from quorate_peers.results import Results

REPEATS = 3
OTHERS_SHARE_MAX = 0.05
ATTEMPTS_MAX = 4
QUIET_WAIT_S = 10.0  # before a disturbed cell is measured again
NEEDED = ("go", "java", "javac", "mvn")


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = _arguments(arguments)
    display = Display()
    kept = BUILD / f"rounds-{commit()}.jsonl"
    if not chosen.resume:
        kept.unlink(missing_ok=True)
    results = Results(kept)
    failures: list[str] = []
    try:
        _build(chosen.peers, display)
        for turn in _turns(chosen, results):
            title = f"{PEERS[turn.peer].title}, {turn.mode}, round {turn.round_number} of {chosen.repeats}"
            try:
                with display.step(title):
                    results.add(turn.peer, turn.mode, _measure(PEERS[turn.peer](turn.mode)))
            except (PeerFailed, MeasureFailed) as error:
                failures.append(f"{title}: {error}")
    except (PeerFailed, OSError) as error:
        failures.append(str(error))
    finally:
        shutil.rmtree(BUILD / "run", ignore_errors=True)
    _tell(results, chosen.publish, display)
    for failure in failures:
        display.line(f"\nnot measured: {failure}\nRESUME=1 measures what is missing, and keeps the rest")
    return 1 if failures else 0


@dataclass(frozen=True)
class Turn:
    """One start of one peer."""

    round_number: int
    mode: Mode
    peer: str


def _turns(chosen: argparse.Namespace, results: Results) -> Iterator[Turn]:
    """All that is not measured yet, in the order of the rounds."""
    done = {(peer, mode): results.rounds(peer, mode) for peer in chosen.peers for mode in chosen.modes}
    for round_number in range(1, chosen.repeats + 1):
        for mode in chosen.modes:
            for peer in chosen.peers:
                if round_number > done[peer, mode]:
                    yield Turn(round_number, mode, peer)


def _tell(results: Results, folder: Path, display: Display) -> None:
    if not results.peers():
        return
    display.line("")
    for mode in MODES:
        display.line(table(results, mode))
    for line in figures_table(judged(results)):
        display.line(line)
    display.line(f"written to {publish(results, folder)}")


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="quorate-bench-peers", description=__doc__)
    parser.add_argument("--peers", nargs="+", choices=list(PEERS), default=list(PEERS), metavar="PEER")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES), metavar="MODE")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="rounds; the median counts (default %(default)s)")
    parser.add_argument("--resume", action="store_true", help="keep what was measured at this commit, and go on")
    folder = REPOSITORY / "loadtest" / "results"
    parser.add_argument("--publish", type=Path, default=folder, help="folder of the table and the figures")
    return parser.parse_args(arguments)


def _build(names: Sequence[str], display: Display) -> None:
    for tool in NEEDED:
        if shutil.which(tool) is None:
            raise PeerFailed(f"{tool} is needed to build the peers and was not found; install it")
    for name in names:
        with display.step(f"building {PEERS[name].title}"):
            PEERS[name].build()


def _measure(peer: Peer) -> dict[Cell, Measured]:
    try:
        _patiently(peer.start)
        _patiently(peer.warm)
        return {cell: _undisturbed(peer, cell) for cell in CELLS}
    finally:
        peer.stop()


T = TypeVar("T")


def _patiently(act: Callable[[], T]) -> T:
    """A cluster that has just started may have no leader yet: one more try."""
    try:
        return act()
    except MeasureFailed:
        time.sleep(3)
        return act()


def _undisturbed(peer: Peer, cell: Cell) -> Measured:
    for attempt in range(1, ATTEMPTS_MAX + 1):
        measured = replace(_patiently(lambda: peer.measure(cell)), attempts=attempt)
        if measured.others_share <= OTHERS_SHARE_MAX:
            break
        time.sleep(QUIET_WAIT_S)
    return measured


if __name__ == "__main__":
    sys.exit(main())
