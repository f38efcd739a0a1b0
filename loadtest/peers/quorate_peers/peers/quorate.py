"""Quorate: three servers, a group of degree 3. Isolation is on; the group's budget is beyond what can be reached."""

from __future__ import annotations

import json
import os
import subprocess
from typing import ClassVar

from quorate_local.components import binary
from quorate_local.display import Display
from quorate_peers.cells import Cell, Mode
from quorate_peers.cluster import BUILD
from quorate_peers.measure import PATIENCE_S, Measured, MeasureFailed
from quorate_peers.peers.peer import Peer
from quorate_scenarios.bench.unbudgeted import create_group, unbudgeted_stack
from quorate_scenarios.customer import Customer


class Quorate(Peer):
    name = "quorate"
    title = "Quorate"
    modes: ClassVar[dict[Mode, str]] = {"mem": "in_memory", "sync": "persistent"}

    @classmethod
    def build(cls) -> None:
        """`make bench-peers` has built it."""

    def start(self) -> None:
        folder = BUILD / "run" / f"quorate-{self.mode}"
        # No peer has TLS in this comparison, so neither has Quorate: its servers here, its client below.
        self._stack = unbudgeted_stack(folder, Display(), is_plaintext=True)
        self._stack.wipe()
        self._stack.__enter__()
        with Customer(self._stack.api_url, "bench") as customer:
            self._handle = create_group(customer, "bench", self.mode, folder)
        self._result = folder / "result.json"

    def client(self, cell: Cell, warmup_s: int, window_s: int) -> list[str]:
        load = ["append", "--plaintext", "--handle", str(self._handle), "--size", str(cell.size_bytes)]
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
