"""ZooKeeper: setData on one node for each append."""

from __future__ import annotations

from typing import ClassVar

from quorate_harness.cells import Mode
from quorate_peers.cluster import LOOPBACK, accepts, build_java, free_ports, java
from quorate_peers.peers.peer import Peer

OUTSTANDING_MAX = 2048  # the server's bound; beyond it the server stops reading


class Zookeeper(Peer):
    name = "zookeeper"
    title = "ZooKeeper 3.9.4"
    modes: ClassVar[dict[Mode, str]] = {"mem": "forceSync=no on tmpfs", "sync": "as it comes"}
    is_java = True

    @classmethod
    def build(cls) -> None:
        build_java("zookeeper")

    def start(self) -> None:
        ports = free_ports(9)
        self._clients, quorum, election = ports[:3], ports[3:6], ports[6:]
        servers = "\n".join(
            f"server.{node + 1}={LOOPBACK}:{quorum[node]}:{election[node]};{LOOPBACK}:{self._clients[node]}"
            for node in range(3)
        )
        for node in range(3):
            data = self.cluster.folder / f"n{node}"
            data.mkdir()
            (data / "myid").write_text(f"{node + 1}\n")
            config = self.cluster.folder / f"n{node}.cfg"
            config.write_text(
                f"tickTime=2000\ninitLimit=20\nsyncLimit=10\ndataDir={data}\nadmin.enableServer=false\n"
                f"globalOutstandingLimit={OUTSTANDING_MAX}\nautopurge.purgeInterval=1\n{servers}\n"
            )
            options = ["-Dzookeeper.forceSync=no"] if self.mode == "mem" else []
            main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
            self.cluster.start(f"n{node}", java("zookeeper", *options, main, config))
        self.cluster.wait_ready(lambda: all(accepts(port) for port in self._clients))

    def client(self) -> list[str]:
        return java("zookeeper", "ZookeeperBench", ",".join(f"{LOOPBACK}:{port}" for port in self._clients))
