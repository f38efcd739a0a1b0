"""What is measured, and what it should be.

Goals that are relative to peers rest on the best peer as it was seen on two cores of a shared machine;
`make bench-peers` measures both in one run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Mode = Literal["mem", "sync"]


@dataclass(frozen=True)
class Goals:
    """Processor seconds of the servers a million appends, appends/s at least, p50 and p99 in µs; None: only told."""

    cpu: float | None = None
    per_s: float | None = None
    p50_us: float | None = None
    p99_us: float | None = None


@dataclass(frozen=True)
class Cell:
    """`name` is the middle of the figures' names; `peer` is what the goals were derived from."""

    name: str
    mode: Mode
    size_bytes: int
    outstanding: int
    goals: Goals
    peer: str

    @property
    def is_alone(self) -> bool:
        """One append at a time: only its latency tells something."""
        return self.outstanding == 1

    def figure(self, what: str) -> str:
        alone = "_out1" if self.is_alone else ""
        return f"append_{self.name}_{self.mode}{alone}_{what}"

    @property
    def title(self) -> str:
        size = f"{self.size_bytes} B" if self.size_bytes < 1024 else f"{self.size_bytes >> 10} KB"
        return f"{size} {'in memory' if self.mode == 'mem' else 'synced'}, {self.outstanding:,} outstanding"


CELLS = (
    Cell("64b", "mem", 64, 1024, Goals(0.8, 2 * 904e3, None, 2800), "Aeron Cluster 904 k/s, p99 2.8 ms"),
    Cell("64b", "sync", 64, 1024, Goals(1.0, 2 * 516e3, None, 3600), "Aeron Cluster 516 k/s, p99 3.6 ms"),
    Cell("1k", "mem", 1024, 1024, Goals(3.0, 2 * 178e3), "Aeron Cluster 178 k/s"),
    Cell("1k", "sync", 1024, 1024, Goals(4.0, 2 * 123e3), "Aeron Cluster 123 k/s"),
    Cell("16k", "mem", 16 << 10, 128, Goals(30.0, 1.5 * 27e3), "hashicorp/raft 27 k/s"),
    Cell("16k", "sync", 16 << 10, 128, Goals(40.0, 1.5 * 9.7e3), "Aeron Cluster 9.7 k/s"),
    Cell("64b", "mem", 64, 1, Goals(p50_us=0.5 * 205), "NATS 205 µs"),
    Cell("64b", "sync", 64, 1, Goals(p50_us=0.6 * 523), "ZooKeeper 523 µs"),
)
SPINNING_P50_US = 0.25 * 205  # NATS, again
GROUPS = 100
GROUPS_CPU_RATIO = 1.1
ISOLATION_CPU_RATIO = 1.02
# Cells that are measured with TLS, and at the floor, too.
COMPARED = tuple(cell for cell in CELLS if cell.mode == "mem" and cell.name != "1k")
