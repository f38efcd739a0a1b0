"""Kafka: one partition, three replicas, acks=all; its page cache, or a flush for every message."""

from __future__ import annotations

import subprocess
from typing import ClassVar

from quorate_peers.cells import Cell, Mode
from quorate_peers.cluster import LOOPBACK, PeerFailed, accepts, build_java, free_ports, java
from quorate_peers.peers.peer import Peer, java_load

CLUSTER_ID = "UXVvcmF0ZS1iZW5jaC0wMQ"
HEAP = "-Xmx1g"
RETENTION_BYTES = 512 << 20
SEGMENT_BYTES = 128 << 20
FORMAT_TIMEOUT_S = 60


class Kafka(Peer):
    name = "kafka"
    title = "Kafka 4.1.2"
    modes: ClassVar[dict[Mode, str]] = {"mem": "page cache on tmpfs", "sync": "log.flush.interval.messages=1"}
    is_java = True

    @classmethod
    def build(cls) -> None:
        build_java("kafka")

    def start(self) -> None:
        ports = free_ports(6)
        self._clients, controllers = ports[:3], ports[3:]
        voters = ",".join(f"{node}@{LOOPBACK}:{port}" for node, port in enumerate(controllers))
        for node in range(3):
            config = self.cluster.folder / f"n{node}.properties"
            config.write_text(self._config(node, controllers[node], voters))
            tool = java("kafka", "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", config)
            done = subprocess.run(tool, capture_output=True, text=True, timeout=FORMAT_TIMEOUT_S, check=False)
            if done.returncode != 0:
                raise PeerFailed(f"Kafka's storage could not be formatted:\n{(done.stdout + done.stderr)[-800:]}")
            self.cluster.start(f"n{node}", java("kafka", HEAP, "kafka.Kafka", config))
        self.cluster.wait_ready(lambda: all(accepts(port) for port in self._clients))

    def _config(self, node: int, controller: int, voters: str) -> str:
        settings = {
            "process.roles": "broker,controller",
            "node.id": node,
            "controller.quorum.voters": voters,
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://{LOOPBACK}:{self._clients[node]},CONTROLLER://{LOOPBACK}:{controller}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": f"{self.cluster.folder}/n{node}",
            "offsets.topic.replication.factor": 1,
            "log.retention.bytes": RETENTION_BYTES,
            "log.segment.bytes": SEGMENT_BYTES,
            "log.retention.check.interval.ms": 1000,
            "log.segment.delete.delay.ms": 1000,
        }
        if self.mode == "sync":
            settings["log.flush.interval.messages"] = 1
        return "\n".join(f"{name}={value}" for name, value in settings.items()) + "\n"

    def client(self, cell: Cell, warmup_s: int, window_s: int) -> list[str]:
        bootstrap = ",".join(f"{LOOPBACK}:{port}" for port in self._clients)
        return java("kafka", "KafkaBench", bootstrap, *java_load(cell, warmup_s, window_s))
