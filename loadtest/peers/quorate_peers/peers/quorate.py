"""Quorate: three servers, a group of degree 3. Isolation is on; the group's budget is beyond what can be reached."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, ClassVar

from quorate_local import Stack, StackOptions
from quorate_local.components import binary
from quorate_local.display import Display
from quorate_local.layout import write_text
from quorate_local.options import REPOSITORY, ServerResources
from quorate_peers.cells import Cell, Mode
from quorate_peers.cluster import BUILD
from quorate_peers.measure import PATIENCE_S, Measured, MeasureFailed
from quorate_peers.peers.peer import Peer
from quorate_scenarios.customer import Customer

BEYOND_REACH = ServerResources(cpu_cores=64.0, network_bytes_per_s=10**12, storage_io_per_s=10**9)
RATE_PER_S = 50_000_000
RETENTION_BYTES = 64 << 20  # small enough to be reached while warming up: then memory and segments are used again
DURABILITY = {"mem": "in_memory", "sync": "persistent"}


class Quorate(Peer):
    name = "quorate"
    title = "Quorate"
    modes: ClassVar[dict[Mode, str]] = {"mem": "in_memory", "sync": "persistent"}

    @classmethod
    def build(cls) -> None:
        """`make bench-peers` has built it."""

    def start(self) -> None:
        folder = BUILD / "run" / f"quorate-{self.mode}"
        options = StackOptions.from_environment(
            state=folder / "state", servers=3, profile=_profile(folder), server_resources=BEYOND_REACH
        )
        self._stack = Stack(options, Display())
        self._stack.wipe()
        self._stack.__enter__()
        sla = {
            "durability": DURABILITY[self.mode],
            "replication_degree": 3,
            "request_size_bytes": 64,
            "rate_per_s": RATE_PER_S,
            "retention_bytes": RETENTION_BYTES,
        }
        with Customer(self._stack.api_url, "bench") as customer:
            group = customer.create_group("bench", sla)
            handle = customer.get(f"/v1/groups/{group['id']}/handle")
        self._handle, self._result = folder / "handle.json", folder / "result.json"
        write_text(self._handle, json.dumps(handle), 0o600)

    def client(self, cell: Cell, warmup_s: int, window_s: int) -> list[str]:
        load = ["append", "--handle", str(self._handle), "--size", str(cell.size_bytes)]
        load += ["--outstanding", str(cell.outstanding), "--warmup", str(warmup_s), "--seconds", str(window_s)]
        pids = ",".join(str(pid) for pid in self._stack.server_pids())
        return [binary(self._stack.options, "quorate-load"), *load, "--server-pids", pids, "--json", str(self._result)]

    def _run(self, cell: Cell, warmup_s: int, window_s: int) -> Measured:
        """The driver reads processor time itself, at the same moments as the other clients' starter does."""
        command, timeout_s = self.client(cell, warmup_s, window_s), warmup_s + window_s + PATIENCE_S
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
        if done.returncode != 0:
            raise MeasureFailed(f"quorate-load ended with code {done.returncode}: {done.stderr[-800:]}")
        result = json.loads(self._result.read_text())
        return Measured(
            acked=result["acked"],
            per_s=result["acked_per_s"],
            p50_us=result["p50_us"],
            p99_us=result["p99_us"],
            servers_cpu_s_per_m=result["servers_cpu_s_per_m"],
            client_cpu_s_per_m=result["client_cpu_s_per_m"],
            others_share=result["others_cores"] / (os.cpu_count() or 1),
        )

    def stop(self) -> None:
        self._stack.__exit__(None, None, None)
        self._stack.wipe()


def _profile(folder: Path) -> Path:
    """The default cost profile with next to no cost, so that admission grants any rate."""
    default = REPOSITORY / "services" / "crates" / "placement" / "profiles" / "default.json"
    profile: dict[str, Any] = json.loads(default.read_text())
    profile["version"], profile["source"] = "beyond-reach", "for measuring without a budget in the way"
    for durability in profile["cpu"].values():
        for points in durability.values():
            for index, point in enumerate(points):
                point["cpu_ns"] = 1 + index
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "profile.json"
    path.write_text(json.dumps(profile))
    return path
