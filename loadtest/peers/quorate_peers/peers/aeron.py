"""Aeron Cluster: a service that echoes the first eight bytes of each message."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path
from typing import ClassVar

from quorate_harness.cells import Mode
from quorate_peers.cluster import PeerFailed, build_java, free_row_of_ports, java, memory_folder
from quorate_peers.measure import Client
from quorate_peers.peers.peer import Peer

OPENS = [
    *("--add-opens", "java.base/jdk.internal.misc=ALL-UNNAMED"),
    *("--add-opens", "java.base/sun.nio.ch=ALL-UNNAMED"),
]
ELECTED = "cluster"
PORTS_PER_NODE = 10
PURGE_TIMEOUT_S = 20.0
KEPT_BYTES_MAX = 4 << 30


class Aeron(Peer):
    name = "aeron"
    title = "Aeron Cluster 1.51.0"
    modes: ClassVar[dict[Mode, str]] = {"mem": "fileSyncLevel 0 on tmpfs", "sync": "fileSyncLevel 1"}
    is_java = True

    @classmethod
    def build(cls) -> None:
        build_java("aeron")

    def start(self) -> None:
        self._base_port = free_row_of_ports(3 * PORTS_PER_NODE)
        sync_level = "1" if self.mode == "sync" else "0"
        self._nodes: list[Client] = []
        for node in range(3):
            folder = self.cluster.folder / f"n{node}"
            folder.mkdir()
            # Drivers and their clients communicate by files that are memory, not data: on tmpfs in both modes.
            arguments = [str(node), str(folder), str(self._media_folder(f"n{node}")), str(self._base_port), sync_level]
            command = java("aeron", *OPENS, "AeronNode", *arguments)
            process = self.cluster.start(f"n{node}", command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self._nodes.append(Client(process, self.cluster.folder / f"n{node}.log", counted=False))
        marks = [self.cluster.folder / f"n{node}" / ELECTED for node in range(3)]
        self.cluster.wait_ready(lambda: all(mark.exists() for mark in marks))

    def client(self) -> list[str]:
        return java("aeron", *OPENS, "AeronBench", self._media_folder("client"), str(self._base_port))

    def rest(self) -> None:
        """Take a snapshot and purge the log, between loads and so in no window. Without that the log only grows.

        A snapshot that is not taken in time may be taken the next time; the log has a bound until then.
        """
        for node in self._nodes:
            node.send("purge\n")
        for node in self._nodes:
            node.await_event(PURGE_TIMEOUT_S, "purged")
        kept_bytes = self.cluster.kept_bytes()
        if kept_bytes > KEPT_BYTES_MAX:
            raise PeerFailed(f"{self.title} keeps {kept_bytes >> 20} MiB after purging")

    @staticmethod
    def _media_folder(whose: str) -> Path:
        return memory_folder(f"aeron-driver-{whose}")

    def stop(self) -> None:
        self._end_client()
        # With SIGTERM alone the JVMs wait for one another.
        self.cluster.stop(signal.SIGKILL)
        for whose in ("n0", "n1", "n2", "client"):
            shutil.rmtree(self._media_folder(whose), ignore_errors=True)
