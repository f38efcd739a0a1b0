"""hashicorp/raft: a library without a server protocol, so the load runs inside the leader: no client's hop."""

from __future__ import annotations

import subprocess
import time
from typing import ClassVar

from quorate_peers.cells import Cell, Mode
from quorate_peers.cluster import BINARIES, LOOPBACK, PeerFailed, accepts, build_go, free_ports
from quorate_peers.measure import PATIENCE_S, Lines, Measured, of_window
from quorate_peers.peers.peer import Peer, go_load
from quorate_peers.processor import ProcessorTime

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
        for node in (1, 2, 0):  # the first to be asked for votes are there when the cluster is made
            folder = ["-dir", str(self.cluster.folder / f"n{node}")] if self.mode == "sync" else []
            command = [str(BINARIES / "raftnode"), "-node", str(node), "-peers", addresses, *folder]
            self.cluster.start(f"n{node}", command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.cluster.wait_ready(lambda: all(accepts(port) for port in ports))

    def client(self, cell: Cell, warmup_s: int, window_s: int) -> list[str]:
        raise NotImplementedError("the load runs inside the leader")

    def _run(self, cell: Cell, warmup_s: int, window_s: int) -> Measured:
        load = (" ".join(go_load(cell, warmup_s, window_s)) + "\n").encode()
        election = time.monotonic() + ELECTION_S
        while time.monotonic() < election:
            for node in self.cluster.processes:
                assert node.stdin is not None
                node.stdin.write(load)
                node.stdin.flush()
                lines = Lines(node.stdout, time.monotonic() + warmup_s + window_s + PATIENCE_S)
                if lines.await_event("begin", "not_leader")["event"] == "begin":
                    before = ProcessorTime.now(self.cluster.pids, None)
                    end = lines.await_event("end")
                    return of_window(end, ProcessorTime.now(self.cluster.pids, None).since(before))
            time.sleep(0.2)
        raise PeerFailed(f"{self.title}: no leader within {ELECTION_S:.0f} s")
