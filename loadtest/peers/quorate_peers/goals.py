"""What Quorate wants of the comparison: bounds of its own, and ratios to the best peer of the same run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from quorate_local.figures import Figure
from quorate_peers.cells import ALONE, CELL_1K, CELL_16K, CELL_64B, Cell, Mode
from quorate_peers.results import OURS, Results

What = Literal["per_s", "cpu_s_per_m", "p50_us", "p99_us"]


@dataclass(frozen=True)
class Bound:
    """Our own figure is at most this."""

    mode: Mode
    cell: Cell
    what: What
    at_most: float


@dataclass(frozen=True)
class Beside:
    """Our figure as a ratio to the best peer's, or to that of the `peers` named."""

    mode: Mode
    cell: Cell
    what: What
    goal: float
    peers: Sequence[str] = ()

    @property
    def more_is_better(self) -> bool:
        return self.what == "per_s"


BOUNDS = (
    Bound("mem", CELL_64B, "cpu_s_per_m", 0.8),
    Bound("sync", CELL_64B, "cpu_s_per_m", 1.0),
    Bound("mem", CELL_1K, "cpu_s_per_m", 3),
    Bound("sync", CELL_1K, "cpu_s_per_m", 4),
    Bound("mem", CELL_16K, "cpu_s_per_m", 30),
    Bound("sync", CELL_16K, "cpu_s_per_m", 40),
)
BESIDE = (
    Beside("mem", CELL_64B, "per_s", 2),
    Beside("sync", CELL_64B, "per_s", 2),
    Beside("mem", CELL_1K, "per_s", 2),
    Beside("sync", CELL_1K, "per_s", 2),
    Beside("mem", CELL_16K, "per_s", 1.5),
    Beside("sync", CELL_16K, "per_s", 1.5),
    Beside("mem", CELL_64B, "p99_us", 1),
    Beside("sync", CELL_64B, "p99_us", 1),
    # hashicorp/raft's load comes from inside its leader: without a client's hop it is no measure here.
    Beside("mem", ALONE, "p50_us", 0.5, peers=("nats",)),
    Beside("sync", ALONE, "p50_us", 0.6, peers=("aeron", "kafka", "nats", "zookeeper", "etcd")),
)


def judged(results: Results) -> Iterator[Figure]:
    """The figures that have a goal, as far as they were measured."""
    for bound in BOUNDS:
        value = results.median(OURS, bound.mode, bound.cell, bound.what)
        if value is not None:
            name = bound.cell.figure(bound.mode, bound.what)
            yield Figure(name, value, "CPU s per million appends", bound.at_most)
    for beside in BESIDE:
        figure = _ratio(results, beside)
        if figure is not None:
            yield figure


def _ratio(results: Results, beside: Beside) -> Figure | None:
    ours = results.median(OURS, beside.mode, beside.cell, beside.what)
    theirs = {
        peer: value
        for peer in beside.peers or results.peers()
        if peer != OURS and (value := results.median(peer, beside.mode, beside.cell, beside.what)) is not None
    }
    if ours is None or not theirs:
        return None
    best = (max if beside.more_is_better else min)(theirs, key=lambda peer: theirs[peer])
    name = f"{beside.cell.figure(beside.mode, beside.what)}_over_best_peer_ratio"
    note = f"{ours:,.0f} beside {theirs[best]:,.0f}, {best}"
    return Figure(name, ours / theirs[best], "ratio", beside.goal, beside.more_is_better, note)
