"""One cell: a load client runs, and processor time is read at the moments its window begins and ends."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from quorate_peers.processor import ProcessorTime

PATIENCE_S = 90.0  # beyond warming up and window


class MeasureFailed(Exception):
    """The client did not finish its window; the message ends with what it said."""


@dataclass(frozen=True)
class Measured:
    """`servers_cpu_s_per_m`: processor seconds of all servers for a million acknowledged appends."""

    acked: int
    per_s: float
    p50_us: int
    p99_us: int
    servers_cpu_s_per_m: float
    client_cpu_s_per_m: float
    others_share: float  # of the machine's processor time in the window
    attempts: int = 1


def run_client(
    command: Sequence[str], servers: Sequence[int], duration_s: float, env: dict[str, str] | None = None
) -> Measured:
    """Run a client that says `begin` and `end` on stdout (loadtest/peers/go/window)."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **(env or {})}
    ) as client:
        try:
            return _follow(client, servers, duration_s)
        except MeasureFailed as error:
            client.kill()
            said = (client.stderr.read() if client.stderr else b"").decode(errors="replace")
            raise MeasureFailed(f"{error}: {said[-800:] or 'it said nothing'}") from None
        finally:
            if client.poll() is None:
                client.terminate()
                try:
                    client.wait(10)
                except subprocess.TimeoutExpired:
                    client.kill()


def _follow(client: subprocess.Popen[bytes], servers: Sequence[int], duration_s: float) -> Measured:
    lines = Lines(client.stdout, time.monotonic() + duration_s + PATIENCE_S)
    lines.await_event("begin")
    before = ProcessorTime.now(servers, client.pid)
    end = lines.await_event("end")
    return of_window(end, ProcessorTime.now(servers, client.pid).since(before))


def of_window(end: dict[str, Any], used: ProcessorTime) -> Measured:
    """The cell from the client's own figures and the processor time of the same window."""
    acked, window_s = int(end["acked"]), float(end["window_s"])
    if acked == 0:
        raise MeasureFailed("nothing was acknowledged in the window")
    millions = acked / 1e6
    others_s = max(used.machine_s - used.servers_s - used.client_s, 0.0)
    return Measured(
        acked=acked,
        per_s=acked / window_s,
        p50_us=int(end["p50_us"]),
        p99_us=int(end["p99_us"]),
        servers_cpu_s_per_m=used.servers_s / millions,
        client_cpu_s_per_m=used.client_s / millions,
        others_share=others_s / (window_s * (os.cpu_count() or 1)),
    )


class Lines:
    """JSON lines from a pipe, with a deadline."""

    def __init__(self, stream: Any, deadline: float) -> None:
        self._fd = stream.fileno()
        os.set_blocking(self._fd, False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._fd, selectors.EVENT_READ)
        self._deadline = deadline
        self._buffer = b""

    def await_event(self, *wanted: str) -> dict[str, Any]:
        while True:
            line = self._line()
            try:
                said = json.loads(line)
            except ValueError:
                continue  # a library's own words
            if isinstance(said, dict) and said.get("event") in wanted:
                return said

    def _line(self) -> bytes:
        while b"\n" not in self._buffer:
            left_s = self._deadline - time.monotonic()
            if left_s <= 0 or not self._selector.select(left_s):
                raise MeasureFailed("the client did not finish in time")
            read = os.read(self._fd, 65536)
            if not read:
                raise MeasureFailed("the client ended early")
            self._buffer += read
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line
