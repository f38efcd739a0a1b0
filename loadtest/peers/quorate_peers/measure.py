"""One cell: a load client runs, and processor time is read when its window begins and ends."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quorate_harness.processor import ProcessorTime
from quorate_peers.pace import Load

PATIENCE_S = 45.0  # beyond warming up and window


class MeasureFailed(Exception):
    """The client did not finish its window; the message ends with its output."""


class NothingAcknowledged(MeasureFailed):
    """The client finished its window, and the servers answered nothing in it."""


class NotLeader(MeasureFailed):
    """The load was given to a server that is not the leader."""


@dataclass(frozen=True)
class Measured:
    """`servers_cpu_s_per_m`: processor seconds of all servers for a million acknowledged appends."""

    acked: int
    per_s: float
    p50_us: float
    p99_us: float
    servers_cpu_s_per_m: float
    client_cpu_s_per_m: float
    others_share: float  # share of the machine's processor time in the window
    attempts: int = 1


class Client:
    """A process that takes one load after another on stdin, and writes `begin` and `end` of each window to stdout.

    `counted`: its own processor time is the client's; else it is one of the servers. `log`: its stderr.
    """

    def __init__(self, process: subprocess.Popen[bytes], log: Path, counted: bool = True) -> None:
        self.process = process
        self._log = log
        self._counted = counted
        self._lines = Lines(process.stdout)

    @classmethod
    def start(cls, command: Sequence[str], log: Path) -> Client:
        with log.open("wb") as stream:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stream)
        return cls(process, log)

    def run(self, load: Load, servers: Sequence[int]) -> Measured:
        with self._last_words():
            return self._follow(load, servers)

    def _follow(self, load: Load, servers: Sequence[int]) -> Measured:
        deadline = time.monotonic() + load.duration_s + PATIENCE_S
        self.send(load.line())
        if self._lines.await_event(deadline, "begin", "not_leader")["event"] == "not_leader":
            raise NotLeader("it is not the leader")
        client = self.process.pid if self._counted else None
        before = ProcessorTime.now(servers, client)
        end = self._lines.await_event(deadline, "end")
        return of_window(end, ProcessorTime.now(servers, client).since(before))

    @contextmanager
    def _last_words(self) -> Iterator[None]:
        try:
            yield
        except (NotLeader, NothingAcknowledged):
            raise
        except (MeasureFailed, OSError) as error:
            said = self._log.read_text(errors="replace")[-800:] if self._log.exists() else ""
            raise MeasureFailed(f"{error}: {said or 'without output'}") from None

    def send(self, line: str) -> None:
        assert self.process.stdin is not None, "a client reads its loads on stdin"
        self.process.stdin.write(line.encode())
        self.process.stdin.flush()

    def await_event(self, timeout_s: float, wanted: str) -> dict[str, Any]:
        with self._last_words():
            return self._lines.await_event(time.monotonic() + timeout_s, wanted)

    def stop(self) -> None:
        """Ends the process at once: its state does not matter."""
        self.process.kill()
        self.process.wait(10)
        self._lines.close()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with suppress(OSError):  # the last load may be unread
                    stream.close()


def of_window(end: dict[str, Any], used: ProcessorTime) -> Measured:
    """The cell from the client's own figures and the processor time of the same window."""
    acked, window_s = int(end["acked"]), float(end["window_s"])
    if acked == 0:
        raise NothingAcknowledged("nothing was acknowledged in the window")
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
    """JSON lines from a pipe."""

    def __init__(self, stream: Any) -> None:
        self._fd = stream.fileno()
        os.set_blocking(self._fd, False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._fd, selectors.EVENT_READ)
        self._buffer = b""

    def await_event(self, deadline: float, *wanted: str) -> dict[str, Any]:
        while True:
            line = self._line(deadline)
            try:
                said = json.loads(line)
            except ValueError:
                continue  # a library's output
            if isinstance(said, dict) and said.get("event") in wanted:
                return said

    def close(self) -> None:
        self._selector.close()

    def _line(self, deadline: float) -> bytes:
        while b"\n" not in self._buffer:
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not self._selector.select(left_s):
                raise MeasureFailed("the client did not finish in time")
            read = os.read(self._fd, 65536)
            if not read:
                raise MeasureFailed("the client ended early")
            self._buffer += read
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line
