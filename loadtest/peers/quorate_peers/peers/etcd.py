"""etcd: a put for each append. The mode without sync writes to memory, with `--unsafe-no-fsync`."""

from __future__ import annotations

from typing import ClassVar

from quorate_harness.cells import Mode
from quorate_peers.cluster import BINARIES, LOOPBACK, accepts, build_go, free_ports
from quorate_peers.peers.peer import Peer

QUOTA_BYTES = 8 << 30


class Etcd(Peer):
    name = "etcd"
    title = "etcd 3.6.16"
    modes: ClassVar[dict[Mode, str]] = {"mem": "--unsafe-no-fsync on tmpfs", "sync": "as it comes"}

    @classmethod
    def build(cls) -> None:
        build_go("etcd", "go.etcd.io/etcd/server/v3")
        build_go("etcdbench", "./etcdbench")

    def start(self) -> None:
        ports = free_ports(6)
        self._clients, peers = [f"{LOOPBACK}:{port}" for port in ports[:3]], ports[3:]
        members = ",".join(f"n{node}=http://{LOOPBACK}:{port}" for node, port in enumerate(peers))
        for node in range(3):
            client, peer = f"http://{self._clients[node]}", f"http://{LOOPBACK}:{peers[node]}"
            flags = {
                "name": f"n{node}",
                "data-dir": f"{self.cluster.folder}/n{node}",
                "listen-client-urls": client,
                "advertise-client-urls": client,
                "listen-peer-urls": peer,
                "initial-advertise-peer-urls": peer,
                "initial-cluster": members,
                # Three servers and the load share two cores: an election in the window would void it.
                "heartbeat-interval": "500",
                "election-timeout": "5000",
                "quota-backend-bytes": str(QUOTA_BYTES),
                "auto-compaction-mode": "revision",
                "auto-compaction-retention": "1000",
                "log-level": "error",
            }
            command = [str(BINARIES / "etcd"), *(f"--{flag}={value}" for flag, value in flags.items())]
            if self.mode == "mem":
                command.append("--unsafe-no-fsync")
            self.cluster.start(f"n{node}", command)
        self.cluster.wait_ready(lambda: all(accepts(port) for port in ports))

    def client(self) -> list[str]:
        return [str(BINARIES / "etcdbench"), "-endpoints", ",".join(self._clients)]
