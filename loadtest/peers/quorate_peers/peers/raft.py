"""hashicorp/raft: a library without a server protocol, so the load runs inside the leader: no client's hop."""

from __future__ import annotations

import subprocess
import time
from typing import ClassVar

from quorate_harness.cells import Mode
from quorate_peers.cluster import BINARIES, LOOPBACK, PeerFailed, accepts, build_go, free_ports
from quorate_peers.measure import Client, Measured, NotLeader
from quorate_peers.pace import Load
from quorate_peers.peers.peer import Peer

ELECTION_S = 30.0


class HashicorpRaft(Peer):
    name = "raft"
    title = "hashicorp/raft 1.8.0 (load inside the leader)"
    modes: ClassVar[dict[Mode, str]] = {"mem": "InmemStore", "sync": "raft-wal 0.4.0, synced"}

    @classmethod
    def build(cls) -> None:
        build_go("raftnode", "./raftnode")

    def start(self) -> None:
        ports = free_ports(3)
        addresses = ",".join(f"{LOOPBACK}:{port}" for port in ports)
        self._nodes: list[Client] = []
        for node in (1, 2, 0):  # node 0 makes the cluster: the voters it asks first must be up
            folder = ["-dir", str(self.cluster.folder / f"n{node}")] if self.mode == "sync" else []
            command = [str(BINARIES / "raftnode"), "-node", str(node), "-peers", addresses, *folder]
            process = self.cluster.start(f"n{node}", command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self._nodes.append(Client(process, self.cluster.folder / f"n{node}.log", counted=False))
        self.cluster.wait_ready(lambda: all(accepts(port) for port in ports))

    def client(self) -> list[str]:
        raise NotImplementedError("the load runs inside the leader")

    def _run(self, load: Load) -> Measured:
        election = time.monotonic() + ELECTION_S
        while time.monotonic() < election:
            for node in self._nodes:
                try:
                    return node.run(load, self.cluster.pids)
                except NotLeader:
                    continue
            time.sleep(0.2)
        raise PeerFailed(f"{self.title}: no leader within {ELECTION_S:.0f} s")
