"""The load driver, run for one measurement at a time."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quorate_scenarios.bench.cells import Cell

TIMEOUT_S = 60.0


class DriverFailed(Exception):
    """The load driver did not finish; the message is what it said."""


@dataclass(frozen=True)
class Measured:
    """One window. `cpu`: processor seconds of the servers a million appends."""

    per_s: float
    p50_us: float
    p99_us: float
    cpu: float
    client_cpu: float
    batch_entries: float
    others_share: float  # of the machine: what disturbed the measurement


@dataclass(frozen=True)
class Pace:
    warmup_s: float
    window_s: float

    def flags(self) -> list[str]:
        return ["--warmup", str(self.warmup_s), "--seconds", str(self.window_s)]


@dataclass(frozen=True)
class Target:
    """Servers to be loaded: the driver's path, the servers' pids; whether the driver, too, does without TLS."""

    binary: str
    pids: Sequence[int]
    folder: Path
    is_plaintext: bool

    def append(
        self, cell: Cell, handles: Sequence[Path], pace: Pace, connections: int = 1, spin_us: int = 0
    ) -> Measured:
        load = ["--size", str(cell.size_bytes), "--outstanding", str(cell.outstanding)]
        load += ["--connections", str(connections), "--spin-us", str(spin_us), *self._to(handles)]
        found = self._run("append", [*load, *pace.flags(), *self._pids()])
        return Measured(
            per_s=found["acked_per_s"],
            p50_us=found["p50_us"],
            p99_us=found["p99_us"],
            cpu=found["servers_cpu_s_per_m"],
            client_cpu=found["client_cpu_s_per_m"],
            batch_entries=found["batch_entries"],
            others_share=found["others_cores"] / (os.cpu_count() or 1),
        )

    def isolation(self, cell: Cell, handle: Path, pairs: int, pace: Pace) -> list[float]:
        """Of each pair of windows, processor time an append with isolation, divided by that without."""
        load = ["--size", str(cell.size_bytes), "--outstanding", str(cell.outstanding), *self._to([handle])]
        found = self._run("isolation", [*load, "--pairs", str(pairs), *pace.flags(), *self._pids()])
        return [pair["on"] / pair["off"] for pair in found["pairs"]]

    def floor(self, cell: Cell, batch_entries: int, pace: Pace) -> dict[str, Any]:
        load = ["--size", str(cell.size_bytes), "--outstanding", str(cell.outstanding)]
        return self._run("floor", [*load, "--batch-entries", str(batch_entries), *pace.flags()])

    def _to(self, handles: Sequence[Path]) -> list[str]:
        named = [text for handle in handles for text in ("--handle", str(handle))]
        return [*named, "--plaintext"] if self.is_plaintext else named

    def _pids(self) -> list[str]:
        return ["--server-pids", ",".join(str(pid) for pid in self.pids)]

    def _run(self, command: str, flags: Sequence[str]) -> dict[str, Any]:
        result = self.folder / f"{command}.json"
        done = subprocess.run(
            [self.binary, command, *flags, "--json", str(result)],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        if done.returncode != 0:
            raise DriverFailed(f"quorate-load {command} ended with code {done.returncode}: {done.stderr[-800:]}")
        return dict(json.loads(result.read_text()))
