"""A fleet of one group as telemetry shows it: heads commit, fail over, lose telemetry and send it again."""

import json
import random
from dataclasses import dataclass, field
from typing import Any

ENTRY_BYTES = 64


@dataclass
class ReplicaLog:
    """Ground truth of one group's log, and the servers' cumulative reports about it."""

    group_id: str
    start_s: int
    committed: int = 0
    server_id: int = 1
    incarnation: str = "a1"
    epoch: int = 1
    log_epoch: int = 0
    lost: int = 0
    """Entries committed in former logs."""
    now_s: int = 0
    reports: list[dict[str, Any]] = field(default_factory=list)
    _open: dict[tuple[int, str, int, int], dict[str, Any]] = field(default_factory=dict)

    def second(self, appends: int, *, throttled: int = 0, reads: int = 0, active_ms: int = 1_000) -> None:
        """One second of the head's work, then its report."""
        window = self.start_s + self.now_s // 60 * 60
        record = self._open.setdefault(
            (self.server_id, self.incarnation, self.epoch, window),
            {
                "group": self.group_id, "epoch": self.epoch, "log_epoch": self.log_epoch, "role": "head",
                "window_start_s": window, "window_s": 60,
                "committed_entries": 0, "committed_bytes": 0, "first_committed_entries": self.committed,
                "first_committed_bytes": self.committed * ENTRY_BYTES, "offered_entries": 0, "throttled_entries": 0,
                "throttled_within_sla_entries": 0, "within_sla_entries": 0, "refused_entries": 0, "read_entries": 0,
                "read_bytes": 0, "active_ms": 0, "paused_ms": 0, "from_ms": (self.start_s + self.now_s) * 1_000,
                "to_ms": 0, "stored_bytes": 0, "latency_us": {},
            },
        )  # fmt: skip
        self.committed += appends
        record["committed_entries"] = self.committed
        record["committed_bytes"] = record["stored_bytes"] = self.committed * ENTRY_BYTES
        record["offered_entries"] += appends + throttled
        record["within_sla_entries"] += appends
        record["throttled_entries"] += throttled
        record["read_entries"] += reads
        record["active_ms"] += active_ms
        record["paused_ms"] += 1_000 - active_ms
        record["to_ms"] = (self.start_s + self.now_s + 1) * 1_000
        if appends:
            record["latency_us"]["200"] = record["latency_us"].get("200", 0) + appends
        follower = record | {
            "role": "tail", "offered_entries": 0, "throttled_entries": 0, "within_sla_entries": 0, "read_entries": 0,
            "active_ms": 0, "paused_ms": 0, "from_ms": 0, "to_ms": 0, "latency_us": {},
        }  # fmt: skip
        self.now_s += 1
        self._send(self.server_id, self.incarnation, record)
        self._send(self.server_id + 1, "b1", follower)

    def fail_over(self) -> None:
        """The next server is head in a new epoch. It knows the committed entries from its own log."""
        self.server_id += 1
        self.epoch += 1
        self.incarnation = f"a{self.epoch}"

    def lose_and_reset(self) -> None:
        """Every replica is gone, and the owner resets the group."""
        self.fail_over()
        self.log_epoch = self.epoch
        self.lost, self.committed = self.lost + self.committed, 0

    @property
    def ever(self) -> int:
        """Entries committed in this log and all former ones."""
        return self.lost + self.committed

    def run(self, seconds: int, seed: int, **options: Any) -> "ReplicaLog":
        rng = random.Random(seed)
        for _ in range(seconds):
            self.second(rng.randrange(50), reads=rng.randrange(3), **options)
            if rng.random() < 0.02:
                self.fail_over()
        return self

    def _send(self, server_id: int, incarnation: str, record: dict[str, Any]) -> None:
        report = {
            "v": 1, "server_id": server_id, "incarnation": incarnation, "at_ms": (self.start_s + self.now_s) * 1000,
            "memory_bytes": 1, "cpu_us": 1, "records": [record],
        }  # fmt: skip
        self.reports.append(json.loads(json.dumps(report)))


def encoded(report: dict[str, Any]) -> dict[str, str]:
    return {"d": json.dumps(report)}
