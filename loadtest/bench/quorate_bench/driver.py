"""The load driver, run for one measurement at a time."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quorate_harness.cells import OPEN_OUTSTANDING_MAX, Cell
from quorate_harness.processor import ProcessorTime
from quorate_harness.quiet import Quiet, W

TIMEOUT_S = 60.0  # beyond the windows themselves


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
    others_share: float  # processor time of other processes during the measurement, as a part of the machine's


@dataclass(frozen=True)
class Floor:
    """One window of bare sockets."""

    p50_us: float
    cpu: float
    others_share: float


@dataclass(frozen=True)
class Isolation:
    """Ratios of pairs of windows: processor time of an append with isolation, divided by that without."""

    ratios: Sequence[float]
    others_share: float


@dataclass(frozen=True)
class Pace:
    warmup_s: float
    window_s: float

    def flags(self) -> list[str]:
        return ["--warmup", str(self.warmup_s), "--seconds", str(self.window_s)]


@dataclass(frozen=True)
class Target:
    """Servers to be loaded: the driver's path, the servers' pids; whether the driver, too, does without TLS.

    Windows that other processes disturbed are measured again.
    """

    binary: str
    pids: Sequence[int]
    folder: Path
    is_plaintext: bool
    quiet: Quiet

    def append(
        self,
        cell: Cell,
        handles: Sequence[Path],
        pace: Pace,
        connections: int = 1,
        spin_us: int = 0,
        rate_per_s: int | None = None,
    ) -> Measured:
        """The cell's closed loop or, with a rate, an open one."""
        amount = _open(rate_per_s) if rate_per_s else _outstanding(cell)
        load = [*amount, "--connections", str(connections), "--spin-us", str(spin_us)]
        load += [*self._to(handles), *self._pids()]
        return self._undisturbed(lambda: _appended(self._run("append", cell, pace, load).said))

    def isolation(self, cell: Cell, handles: Sequence[Path], rate_per_s: int, pairs: int, pace: Pace) -> Isolation:
        """An open loop over all groups, each on a connection of its own."""
        load = [*_open(rate_per_s), "--connections", str(len(handles)), "--pairs", str(pairs)]
        load += [*self._to(handles), *self._pids()]
        return self._undisturbed(lambda: _isolated(self._run("isolation", cell, pace, load, 2 * pairs)))

    def floor(self, cell: Cell, batch_entries: int, pace: Pace) -> Floor:
        load = [*_outstanding(cell), "--batch-entries", str(batch_entries)]
        return self._undisturbed(lambda: _floored(self._run("floor", cell, pace, load)))

    def _undisturbed(self, measure: Callable[[], W]) -> W:
        return self.quiet.least_disturbed(measure)[0]

    def _to(self, handles: Sequence[Path]) -> list[str]:
        named = [text for handle in handles for text in ("--handle", str(handle))]
        return [*named, "--plaintext"] if self.is_plaintext else named

    def _pids(self) -> list[str]:
        return ["--server-pids", ",".join(str(pid) for pid in self.pids)]

    def _run(self, command: str, cell: Cell, pace: Pace, flags: Sequence[str], windows: int = 1) -> _Ran:
        result = self.folder / f"{command}.json"
        size = ["--size", str(cell.size_bytes)]
        before, begun, children_s = ProcessorTime.now(self.pids, None), time.monotonic(), _children_s()
        done = subprocess.run(
            [self.binary, command, *size, *flags, *pace.flags(), "--json", str(result)],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S + pace.warmup_s + windows * 2 * pace.window_s,
            check=False,
        )
        if done.returncode != 0:
            said = (done.stderr or done.stdout)[-800:]
            raise DriverFailed(f"quorate-load {command} ended with code {done.returncode}: {said}")
        used = ProcessorTime.now(self.pids, None).since(before)
        ours_s = used.servers_s + _children_s() - children_s
        others_s = max(used.machine_s - ours_s, 0.0)
        share = others_s / ((time.monotonic() - begun) * (os.cpu_count() or 1))
        return _Ran(dict(json.loads(result.read_text())), share)


@dataclass(frozen=True)
class _Ran:
    """The driver's report, and the processor time that others used while the driver ran, from its start to its end."""

    said: dict[str, Any]
    others_share: float


def _outstanding(cell: Cell) -> list[str]:
    return ["--outstanding", str(cell.outstanding)]


def _open(rate_per_s: int) -> list[str]:
    return ["--rate", str(rate_per_s), "--outstanding-max", str(OPEN_OUTSTANDING_MAX)]


def _children_s() -> float:
    """Processor time of all children that ended, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _appended(said: dict[str, Any]) -> Measured:
    return Measured(
        per_s=said["acked_per_s"],
        p50_us=said["p50_us"],
        p99_us=said["p99_us"],
        cpu=said["servers_cpu_s_per_m"],
        client_cpu=said["client_cpu_s_per_m"],
        batch_entries=said["batch_entries"],
        others_share=said["others_cores"] / (os.cpu_count() or 1),
    )


def _isolated(ran: _Ran) -> Isolation:
    return Isolation([pair["on"] / pair["off"] for pair in ran.said["pairs"]], ran.others_share)


def _floored(ran: _Ran) -> Floor:
    return Floor(ran.said["p50_us"], ran.said["servers_cpu_s_per_m"], ran.others_share)
