"""Aeron Cluster: a service that echoes the first eight bytes of each message."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path
from typing import ClassVar

from quorate_peers.cells import Cell, Mode
from quorate_peers.cluster import build_java, free_ports, java, memory_folder
from quorate_peers.peers.peer import Peer, java_load

OPENS = [
    *("--add-opens", "java.base/jdk.internal.misc=ALL-UNNAMED"),
    *("--add-opens", "java.base/sun.nio.ch=ALL-UNNAMED"),
]
ELECTED = "cluster"


class Aeron(Peer):
    name = "aeron"
    title = "Aeron Cluster 1.51.0"
    modes: ClassVar[dict[Mode, str]] = {"mem": "fileSyncLevel 0 on tmpfs", "sync": "fileSyncLevel 1"}
    is_java = True

    @classmethod
    def build(cls) -> None:
        build_java("aeron")

    def start(self) -> None:
        # Thirty ports in a row: 10 for each node. A port found free stands at their beginning.
        self._base_port = min(free_ports(1)[0], 65_000)
        sync_level = "1" if self.mode == "sync" else "0"
        for node in range(3):
            folder = self.cluster.folder / f"n{node}"
            folder.mkdir()
            arguments = ["AeronNode", str(node), str(folder), str(self._base_port), sync_level]
            self.cluster.start(f"n{node}", java("aeron", *OPENS, *arguments))
        marks = [self.cluster.folder / f"n{node}" / ELECTED for node in range(3)]
        self.cluster.wait_ready(lambda: all(mark.exists() for mark in marks))

    def client(self, cell: Cell, warmup_s: int, window_s: int) -> list[str]:
        load = java_load(cell, warmup_s, window_s)
        return java("aeron", *OPENS, "AeronBench", self._media_folder, str(self._base_port), *load)

    @property
    def _media_folder(self) -> Path:
        return memory_folder("aeron-client")

    def stop(self) -> None:
        # SIGTERM alone leaves the JVMs waiting for one another.
        self.cluster.stop(signal.SIGKILL)
        shutil.rmtree(self._media_folder, ignore_errors=True)
