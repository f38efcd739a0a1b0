"""The interface of a compared system."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from typing import ClassVar

from quorate_harness.cells import CELLS, Cell, Mode
from quorate_peers.cluster import Cluster, disk_folder, memory_folder
from quorate_peers.measure import Client, Measured, MeasureFailed, NothingAcknowledged
from quorate_peers.pace import USUAL, Load, Pace


class Peer(ABC):
    """One system, started in one mode: `build` once, then `start`; `warm` and `measure` each cell; `stop`.

    One client process serves all cells of a start: its JVM, or its heap, is as warm as the servers'.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    modes: ClassVar[dict[Mode, str]]  # the meaning of each mode for this system
    cells: ClassVar[tuple[Cell, ...]] = CELLS
    is_java: ClassVar[bool] = False

    def __init__(self, mode: Mode, pace: Pace = USUAL) -> None:
        self.mode = mode
        self.pace = pace
        folder = memory_folder(self.name) if mode == "mem" else disk_folder(self.name)
        self.cluster = Cluster(self.title, folder)
        self._client: Client | None = None

    @classmethod
    @abstractmethod
    def build(cls) -> None:
        """Fetch sources from package registries and compile them."""

    @abstractmethod
    def start(self) -> None: ...

    @abstractmethod
    def client(self) -> list[str]:
        """The command of the load client."""

    def warm(self, cell: Cell) -> None:
        """Run a load that does not count: the first use of memory, files and a JVM's code is slow."""
        with suppress(NothingAcknowledged):  # in its window of a tenth of a second
            self._run(self.pace.warmup(cell, self.is_java))
        self.rest()

    def measure(self, cell: Cell) -> Measured:
        measured = self._run(self.pace.measured(cell))
        self.rest()
        return measured

    def rest(self) -> None:
        """After each load: free memory and disk that the system's own retention does not bound."""
        return

    def stop(self) -> None:
        self._end_client()
        self.cluster.stop()

    def _run(self, load: Load) -> Measured:
        if self._client is None:
            self._client = Client.start(self.client(), self.cluster.folder / "client.log")
        try:
            return self._client.run(load, self.cluster.pids)
        except NothingAcknowledged:
            raise
        except MeasureFailed:
            self._end_client()  # a failed client is not used again
            raise

    def _end_client(self) -> None:
        if self._client is not None:
            self._client.stop()
            self._client = None
