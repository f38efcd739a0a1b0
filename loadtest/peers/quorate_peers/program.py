"""`make bench-peers`: every peer in turn, several times round, Quorate among them; a table and figures.

Each peer runs as three processes on loopback with nothing beside it. A cell in which other processes
used more than 5 % of the machine is measured again.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from quorate_local.display import Display
from quorate_local.options import REPOSITORY
from quorate_peers.cells import CELLS, MODES, Cell, Mode
from quorate_peers.cluster import BUILD, PeerFailed
from quorate_peers.measure import Measured, MeasureFailed
from quorate_peers.peers import PEERS
from quorate_peers.peers.peer import Peer
from quorate_peers.report import Results, publish, table

REPEATS = 3
OTHERS_SHARE_MAX = 0.05
ATTEMPTS_MAX = 4
QUIET_WAIT_S = 10.0  # before a disturbed cell is measured again
NEEDED = ("go", "java", "javac", "mvn")


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = _arguments(arguments)
    display = Display()
    results = Results()
    try:
        _build(chosen.peers, display)
        for round_number in range(1, chosen.repeats + 1):
            for mode in chosen.modes:
                for name in chosen.peers:
                    title = f"{PEERS[name].title}, {mode}, round {round_number} of {chosen.repeats}"
                    with display.step(title):
                        _measure(PEERS[name](mode), mode, results)
    except (PeerFailed, MeasureFailed, OSError) as error:
        display.line(f"\nThe comparison stopped.\n{error}")
        return 1
    finally:
        shutil.rmtree(BUILD / "run", ignore_errors=True)
    display.line("")
    for mode in chosen.modes:
        display.line(table(results, mode))
    if chosen.publish is not None:
        display.line(f"written to {publish(results, chosen.publish)}")
    return 0


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="quorate-bench-peers", description=__doc__)
    parser.add_argument("--peers", nargs="+", choices=list(PEERS), default=list(PEERS), metavar="PEER")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES), metavar="MODE")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="rounds; the median counts (default %(default)s)")
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


def _measure(peer: Peer, mode: Mode, results: Results) -> None:
    try:
        _patiently(peer.start)
        _patiently(peer.warm)
        for cell in CELLS:
            results.add(peer.name, mode, cell, _undisturbed(peer, cell))
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
