"""NATS JetStream: a stream of three replicas, in memory or in files that are synced on each write."""

from __future__ import annotations

from typing import ClassVar

from quorate_harness.cells import Mode
from quorate_harness.unbudgeted import RETENTION_BYTES
from quorate_peers.cluster import BINARIES, LOOPBACK, accepts, build_go, free_ports
from quorate_peers.peers.peer import Peer

MEMORY_BYTES_MAX = 4 << 30
FILE_BYTES_MAX = 6 << 30


class Nats(Peer):
    name = "nats"
    title = "NATS JetStream 2.15.2"
    modes: ClassVar[dict[Mode, str]] = {"mem": "memory storage", "sync": "file storage, sync_interval: always"}

    @classmethod
    def build(cls) -> None:
        build_go("nats-server", "github.com/nats-io/nats-server/v2")
        build_go("natsbench", "./natsbench")

    def start(self) -> None:
        ports = free_ports(6)
        self._clients, routes = ports[:3], ports[3:]
        for node in range(3):
            config = self.cluster.folder / f"n{node}.conf"
            config.write_text(self._config(node, routes))
            self.cluster.start(f"n{node}", [BINARIES / "nats-server", "-c", config])
        self.cluster.wait_ready(lambda: all(accepts(port) for port in self._clients))

    def _config(self, node: int, routes: list[int]) -> str:
        sync = "sync_interval: always" if self.mode == "sync" else ""
        urls = ", ".join(f"nats-route://{LOOPBACK}:{route}" for route in routes)
        return f"""
server_name: n{node}
listen: {LOOPBACK}:{self._clients[node]}
cluster {{ name: bench, listen: {LOOPBACK}:{routes[node]}, routes: [{urls}] }}
jetstream {{ store_dir: "{self.cluster.folder}/n{node}", max_mem: {MEMORY_BYTES_MAX}, max_file: {FILE_BYTES_MAX}
  {sync} }}
"""

    def client(self) -> list[str]:
        # With the servers' names: the client connects to the stream's leader.
        servers = ",".join(f"n{node}=nats://{LOOPBACK}:{port}" for node, port in enumerate(self._clients))
        storage = "file" if self.mode == "sync" else "memory"
        retention = ["-retention", str(RETENTION_BYTES)]
        return [str(BINARIES / "natsbench"), "-servers", servers, "-storage", storage, *retention]
