"""What a system must offer to be compared."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from quorate_peers.cells import JVM_WARMUP_S, WARMUP_S, WINDOW_S, Cell, Mode
from quorate_peers.cluster import Cluster, disk_folder, memory_folder
from quorate_peers.measure import Measured, run_client


class Peer(ABC):
    """One system, started in one mode: `build` once, then `start`, `measure` each cell, `stop`."""

    name: ClassVar[str]
    title: ClassVar[str]
    modes: ClassVar[dict[Mode, str]]  # what each mode means for this system
    is_java: ClassVar[bool] = False

    def __init__(self, mode: Mode) -> None:
        self.mode = mode
        folder = memory_folder(self.name) if mode == "mem" else disk_folder(self.name)
        self.cluster = Cluster(self.title, folder)

    @classmethod
    @abstractmethod
    def build(cls) -> None:
        """Fetch and compile what is needed, from package registries only."""

    @abstractmethod
    def start(self) -> None: ...

    @abstractmethod
    def client(self, cell: Cell, warmup_s: int, window_s: int) -> list[str]:
        """The command of the load client."""

    def warm(self) -> None:
        """A JVM compiles what runs often: it gets its load some time before it counts."""
        if self.is_java:
            self._run(Cell("64b", 64, 1024), JVM_WARMUP_S, 1)

    def measure(self, cell: Cell) -> Measured:
        return self._run(cell, WARMUP_S, WINDOW_S)

    def stop(self) -> None:
        self.cluster.stop()

    def _run(self, cell: Cell, warmup_s: int, window_s: int) -> Measured:
        return run_client(self.client(cell, warmup_s, window_s), self.cluster.pids, warmup_s + window_s)


def go_load(cell: Cell, warmup_s: int, window_s: int) -> list[str]:
    """The flags of loadtest/peers/go/window."""
    return [
        *("-size", str(cell.size_bytes), "-outstanding", str(cell.outstanding)),
        *("-warmup", f"{warmup_s}s", "-window", f"{window_s}s"),
    ]


def java_load(cell: Cell, warmup_s: int, window_s: int) -> list[str]:
    """The arguments of loadtest/peers/java/window."""
    return [str(cell.size_bytes), str(cell.outstanding), str(warmup_s), str(window_s)]
