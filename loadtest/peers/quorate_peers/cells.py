"""What is measured: sizes and outstanding requests, in memory and synced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Mode = Literal["mem", "sync"]
MODES: tuple[Mode, ...] = ("mem", "sync")
MODE_NAMES = {"mem": "in memory", "sync": "synced"}

WARMUP_S = 2
WINDOW_S = 5
JVM_WARMUP_S = 30  # a Java peer is loaded so long before its first window, once for each start


@dataclass(frozen=True)
class Cell:
    """`name` is the middle of the figures' names."""

    name: str
    size_bytes: int
    outstanding: int

    @property
    def title(self) -> str:
        size = f"{self.size_bytes} B" if self.size_bytes < 1024 else f"{self.size_bytes // 1024} KB"
        return f"{size}, {self.outstanding:,} outstanding"

    def figure(self, mode: Mode, what: str) -> str:
        """The name of one of this cell's figures, as `append_1k_sync_p99_us`."""
        alone = "_out1" if self.outstanding == 1 else ""
        return f"append_{self.name}_{mode}{alone}_{what}"


CELL_64B = Cell("64b", 64, 1024)
CELL_1K = Cell("1k", 1024, 1024)
CELL_16K = Cell("16k", 16 << 10, 128)
ALONE = Cell("64b", 64, 1)
CELLS = (CELL_64B, CELL_1K, CELL_16K, ALONE)
