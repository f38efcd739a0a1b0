"""Quorate: three servers, a group of degree 3. Isolation is on; the group's budget is beyond reach."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import httpx2

from quorate_harness.cells import ALONE, SPIN_US, Cell, Mode
from quorate_harness.customer import Customer, Refused
from quorate_harness.unbudgeted import create_group, unbudgeted_stack
from quorate_local import ProcessFailed, Stack
from quorate_local.components import binary
from quorate_local.display import Display
from quorate_local.options import BadOptions
from quorate_peers.cluster import PeerFailed, disk_folder
from quorate_peers.measure import PATIENCE_S, Measured, MeasureFailed
from quorate_peers.pace import USUAL, Load, Pace
from quorate_peers.peers.peer import Peer

NOT_STARTED = (BadOptions, ProcessFailed, Refused, TimeoutError, httpx2.HTTPError, subprocess.SubprocessError)


class Quorate(Peer):
    name = "quorate"
    title = "Quorate"
    modes: ClassVar[dict[Mode, str]] = {"mem": "in_memory", "sync": "persistent"}
    spin_us: ClassVar[int] = 0

    def __init__(self, mode: Mode, pace: Pace = USUAL) -> None:
        super().__init__(mode, pace)
        self._folder = disk_folder(f"{self.name}-{mode}")
        self._stack: Stack | None = None

    @classmethod
    def build(cls) -> None:
        """Nothing to do: `make bench-peers` has built it."""

    def start(self) -> None:
        with _translated():
            # No peer uses TLS in this comparison. Quorate's servers do not here, its client does not below.
            env = {"QUORATE_SPIN_US": str(self.spin_us)}
            self._stack = unbudgeted_stack(self._folder, Display(quiet=True), is_plaintext=True, server_env=env)
            self._stack.start()
            with Customer(self._stack.api_url, "bench") as customer:
                self._handle = create_group(customer, "bench", self.mode, self._folder)

    def client(self) -> list[str]:
        raise NotImplementedError("quorate-load takes one load, and needs no warm-up")

    def _run(self, load: Load) -> Measured:
        """The driver reads processor time itself, at the same moments as is done for the other clients."""
        assert self._stack is not None, "measured before it was started"
        result = self._folder / "result.json"
        pids = ",".join(str(pid) for pid in self._stack.server_pids())
        command = [binary(self._stack.options, "quorate-load"), "append", "--plaintext", "--handle", str(self._handle)]
        command += ["--size", str(load.size_bytes), "--outstanding", str(load.outstanding)]
        command += ["--warmup", f"{load.warmup_s:g}", "--seconds", f"{load.window_s:g}"]
        command += ["--spin-us", str(self.spin_us), "--server-pids", pids, "--json", str(result)]
        try:
            timeout_s = load.duration_s + PATIENCE_S
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
        except (subprocess.SubprocessError, OSError) as error:
            raise MeasureFailed(f"quorate-load did not finish: {error}") from error
        if done.returncode != 0:
            raise MeasureFailed(f"quorate-load ended with code {done.returncode}: {done.stderr[-800:]}")
        said = json.loads(result.read_text())
        return Measured(
            acked=said["acked"],
            per_s=said["acked_per_s"],
            p50_us=said["p50_us"],
            p99_us=said["p99_us"],
            servers_cpu_s_per_m=said["servers_cpu_s_per_m"],
            client_cpu_s_per_m=said["client_cpu_s_per_m"],
            others_share=said["others_cores"] / (os.cpu_count() or 1),
        )

    def stop(self) -> None:
        try:
            if self._stack is not None:
                with _translated():
                    self._stack.wipe()
        finally:
            super().stop()
            shutil.rmtree(self._folder, ignore_errors=True)


class SpinningQuorate(Quorate):
    """Servers and client poll before they sleep: for one append at a time."""

    name = "quorate-spin"
    title = f"Quorate, spinning {SPIN_US} µs"
    cells: ClassVar[tuple[Cell, ...]] = tuple(ALONE.values())
    spin_us = SPIN_US


@contextmanager
def _translated() -> Iterator[None]:
    """Turn errors of a stack into errors of a peer."""
    try:
        yield
    except NOT_STARTED as error:
        raise PeerFailed(f"Quorate: {error}") from error
