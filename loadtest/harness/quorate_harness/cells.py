"""Cells that are measured, and their goals. `make bench` measures Quorate alone, `make bench-peers` beside its peers.

A goal that is relative to peers is judged by the best of them: in the same run where they were measured, else by
`peer_baseline.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Mode = Literal["mem", "sync"]
MODES: tuple[Mode, ...] = ("mem", "sync")
MODE_NAMES: dict[Mode, str] = {"mem": "in memory", "sync": "synced"}
What = Literal["per_s", "cpu_s_per_m", "client_cpu_s_per_m", "p50_us", "p99_us"]
UNITS: dict[What, str] = {
    "per_s": "appends/s",
    "cpu_s_per_m": "CPU s per million appends",
    "client_cpu_s_per_m": "CPU s per million appends",
    "p50_us": "µs",
    "p99_us": "µs",
}


@dataclass(frozen=True)
class Cell:
    """`name` is the middle of the figures' names."""

    name: str
    mode: Mode
    size_bytes: int
    outstanding: int

    @property
    def is_alone(self) -> bool:
        """One append at a time: only its latency means anything."""
        return self.outstanding == 1

    @property
    def key(self) -> str:
        """`64b_mem`, `64b_mem_out1`: what people choose it by."""
        return f"{self.name}_{self.mode}{'_out1' if self.is_alone else ''}"

    @property
    def load_title(self) -> str:
        size = f"{self.size_bytes} B" if self.size_bytes < 1024 else f"{self.size_bytes >> 10} KB"
        return f"{size}, {self.outstanding:,} outstanding"

    @property
    def title(self) -> str:
        return f"{self.load_title}, {MODE_NAMES[self.mode]}"

    def figure(self, what: str, is_spinning: bool = False) -> str:
        """The name of one of this cell's figures, as `append_1k_sync_p99_us`."""
        return f"append_{self.key}_{'spin_' if is_spinning else ''}{what}"


def _cells(name: str, size_bytes: int, outstanding: int) -> dict[Mode, Cell]:
    return {mode: Cell(name, mode, size_bytes, outstanding) for mode in MODES}


CELL_64B = _cells("64b", 64, 1024)
CELL_1K = _cells("1k", 1024, 1024)
CELL_16K = _cells("16k", 16 << 10, 128)
ALONE = _cells("64b", 64, 1)
CELLS = tuple(cells[mode] for cells in (CELL_64B, CELL_1K, CELL_16K, ALONE) for mode in MODES)
# Values of a cell that become figures.
WHATS_ALONE: tuple[What, ...] = ("p50_us",)
WHATS: tuple[What, ...] = ("cpu_s_per_m", "per_s", "p50_us", "p99_us", "client_cpu_s_per_m")


@dataclass(frozen=True)
class Bound:
    """Our own figure is at most this."""

    cell: Cell
    what: What
    at_most: float


@dataclass(frozen=True)
class Beside:
    """Our figure, divided by the best peer's, or by that of the `peers` named: a rate at least, all else at most."""

    cell: Cell
    what: What
    ratio: float
    peers: Sequence[str] = ()
    is_spinning: bool = False

    @property
    def more_is_better(self) -> bool:
        return self.what == "per_s"

    def best(self, theirs: Mapping[str, float]) -> str | None:
        """The peer whose figure ours is divided by."""
        counting = [peer for peer in theirs if not self.peers or peer in self.peers]
        return (max if self.more_is_better else min)(counting, key=lambda peer: theirs[peer], default=None)


BOUNDS = (
    Bound(CELL_64B["mem"], "cpu_s_per_m", 0.8),
    Bound(CELL_64B["sync"], "cpu_s_per_m", 1.0),
    Bound(CELL_1K["mem"], "cpu_s_per_m", 3),
    Bound(CELL_1K["sync"], "cpu_s_per_m", 4),
    Bound(CELL_16K["mem"], "cpu_s_per_m", 30),
    Bound(CELL_16K["sync"], "cpu_s_per_m", 40),
)
BESIDE = (
    Beside(CELL_64B["mem"], "per_s", 2),
    Beside(CELL_64B["sync"], "per_s", 2),
    Beside(CELL_1K["mem"], "per_s", 2),
    Beside(CELL_1K["sync"], "per_s", 2),
    Beside(CELL_16K["mem"], "per_s", 1.5),
    Beside(CELL_16K["sync"], "per_s", 1.5),
    Beside(CELL_64B["mem"], "p99_us", 1),
    Beside(CELL_64B["sync"], "p99_us", 1),
    Beside(ALONE["mem"], "p50_us", 0.5, peers=("nats",)),
    Beside(ALONE["mem"], "p50_us", 0.25, peers=("nats",), is_spinning=True),
    # hashicorp/raft's load comes from inside its leader: without a client's hop it is no measure here.
    Beside(ALONE["sync"], "p50_us", 0.6, peers=("aeron", "kafka", "nats", "zookeeper", "etcd")),
)
GROUPS = 100
GROUPS_CPU_RATIO = 1.1
OPEN_OUTSTANDING_MAX = 4_096  # for an open loop, as clients have: a machine that is short refuses nothing then
GROUPS_RATES_PER_S = (100_000, 300_000)  # open loops that one group and many are compared at: well below saturation
ISOLATION_CPU_RATIO = 1.02
# Open loops over many tenants at which isolation is switched on and off. Both have the same load in short batches, as
# each batch costs isolation once. Each rate is half of what these servers and the driver can do, or less.
ISOLATION_RATES_PER_S: dict[str, dict[Mode, int]] = {
    "64b": {"mem": 200_000, "sync": 100_000},
    "1k": {"mem": 100_000, "sync": 50_000},
    "16k": {"mem": 10_000, "sync": 6_000},
}
SPIN_US = 200  # servers and client, where spinning is measured
# Cells that are measured with TLS, and at the floor, too.
COMPARED = tuple(cell for cell in CELLS if cell.mode == "mem" and cell.name != "1k")
