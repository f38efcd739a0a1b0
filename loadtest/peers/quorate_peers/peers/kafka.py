"""Kafka: one partition, three replicas, acks=all; its page cache, or a flush for every message."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from quorate_harness.cells import Mode
from quorate_harness.unbudgeted import RETENTION_BYTES
from quorate_peers.cluster import LOOPBACK, PeerFailed, accepts, build_java, free_ports, java
from quorate_peers.peers.peer import Peer

CLUSTER_ID = "UXVvcmF0ZS1iZW5jaC0wMQ"
HEAP = "-Xmx1g"
SEGMENT_BYTES = RETENTION_BYTES // 2  # retention is bounded in whole segments
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
        configs = [self.cluster.folder / f"n{node}.properties" for node in range(3)]
        for node, config in enumerate(configs):
            config.write_text(self._config(node, controllers[node], voters))
        self._format(configs)
        for node, config in enumerate(configs):
            self.cluster.start(f"n{node}", java("kafka", HEAP, "kafka.Kafka", config))
        self.cluster.wait_ready(lambda: all(accepts(port) for port in self._clients))

    def _format(self, configs: Sequence[Path]) -> None:
        """Format all brokers' storage at once: each needs a JVM's start."""
        tools = [
            subprocess.Popen(
                java("kafka", "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", config),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for config in configs
        ]
        try:
            for tool in tools:
                said, _ = tool.communicate(timeout=FORMAT_TIMEOUT_S)
                if tool.returncode != 0:
                    raise PeerFailed(f"Kafka's storage could not be formatted:\n{said[-800:]}")
        except subprocess.TimeoutExpired:
            raise PeerFailed(f"Kafka's storage was not formatted within {FORMAT_TIMEOUT_S} s") from None
        finally:
            for tool in tools:
                if tool.poll() is None:
                    tool.kill()
                    tool.wait(10)

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

    def client(self) -> list[str]:
        return java("kafka", "KafkaBench", ",".join(f"{LOOPBACK}:{port}" for port in self._clients))
