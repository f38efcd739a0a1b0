"""One supervised process: started, waited for, recorded, stopped.

A record in `run/<name>.json` outlives the supervisor. So `make down` in another shell, or the next run after a crash,
knows the exact processes of the stack.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from quorate_local.identity import Identity
from quorate_local.layout import Layout, read_json, write_json

STOP_GRACE_S = 5.0  # then SIGKILL: every process must survive that anyway
KILL_WAIT_S = 5.0  # SIGKILL takes effect at once unless the process is stuck in the kernel
POLL_S = 0.03
LOG_TAIL_LINES = 15
LOG_READ_BYTES_MAX = 256 * 1024  # enough to find a readiness line; a log may be large

EXIT_CODES = {  # docs/internals/processes.md
    0: "it stopped as if asked to",
    2: "bad flags or configuration",
    3: "a dependency is missing",
    4: "its port is in use",
    5: "its disk, or what is on it, is unusable",
    6: "its log is older than what its servers know",
}
EXIT_PORT_IN_USE = 4


class ProcessFailed(Exception):
    """A process did not become ready. The message names it and shows the end of its log."""

    def __init__(self, name: str, reason: str, log: Path, exit_code: int | None = None) -> None:
        self.name = name
        self.reason = reason
        self.log = log
        self.exit_code = exit_code
        tail = "\n".join(f"    {line}" for line in tail_of(log)) or "    (nothing)"
        super().__init__(f"{name} {reason}\n  its log ends ({log}):\n{tail}")


@dataclass(frozen=True)
class ProcessSpec:
    """Command of a process and its sign of readiness.

    `ready` is called every few milliseconds and must return quickly; an exception of `OSError` means "not yet". `phase`
    orders the stack: lower starts earlier and stops later.
    """

    name: str
    command: list[str]
    ready: Callable[[Running], bool]
    phase: int
    env: Mapping[str, str] = field(default_factory=dict)
    ready_timeout_s: float = 30.0
    stop_signal: signal.Signals = signal.SIGTERM
    group_id: int | None = None  # of its sockets, so that a packet filter can tell them from others


class Running:
    """A process that was started, by this supervisor or by an earlier one."""

    def __init__(
        self,
        name: str,
        identity: Identity,
        layout: Layout,
        phase: int,
        stop_signal: signal.Signals = signal.SIGTERM,
        child: subprocess.Popen[bytes] | None = None,
        log_start: int = 0,
    ) -> None:
        self.name = name
        self.identity = identity
        self.phase = phase
        self.stop_signal = stop_signal
        self.log = layout.log(name)
        self._record = layout.record(name)
        self._child = child
        self._log_start = log_start

    @classmethod
    def start(cls, spec: ProcessSpec, layout: Layout) -> Running:
        """Start it, detached from this terminal, and record it before anything else happens."""
        log = layout.log(spec.name)
        with log.open("ab") as stream:
            stream.write(f"--- {_now()} starting {spec.name}\n".encode())
            stream.flush()
            log_start = stream.tell()
            try:
                child = subprocess.Popen(
                    spec.command,
                    env={**os.environ, **spec.env},
                    stdin=subprocess.DEVNULL,
                    stdout=stream,
                    stderr=stream,
                    cwd=layout.root,
                    start_new_session=True,
                    group=spec.group_id,
                )
            except OSError as error:
                reason = f"could not be started: {error}"
                raise ProcessFailed(spec.name, reason, log) from error
        identity = Identity.of(child.pid)  # an unreaped child's pid cannot have been reused
        running = cls(spec.name, identity, layout, spec.phase, spec.stop_signal, child, log_start)
        running._write_record()
        return running

    @classmethod
    def adopt(cls, name: str, pid: int, layout: Layout, phase: int, stop_signal: signal.Signals) -> Running:
        """Record a process that another program started for this stack."""
        running = cls(name, Identity.of(pid), layout, phase, stop_signal)
        running._write_record()
        return running

    @classmethod
    def recorded(cls, layout: Layout) -> list[Running]:
        """Every process that `run/` names, dead or alive, in the order of their start."""
        found = []
        for path in layout.records():
            record = read_json(path)
            if record is None:
                continue
            stop_signal = signal.Signals[record["stop_signal"]]
            identity = Identity.from_json(record["identity"])
            phase = int(record["phase"])
            found.append(cls(record["name"], identity, layout, phase, stop_signal))
        return sorted(found, key=lambda running: (running.phase, running.name))

    def wait_ready(self, spec: ProcessSpec) -> float:
        """Wait until it is ready; returns the seconds that took, or raises `ProcessFailed`."""
        begun = time.monotonic()
        while True:
            if not self.is_alive():
                code = self.exit_code()
                raise ProcessFailed(self.name, describe_exit(code), self.log, code)
            if _ready_now(spec, self):
                return time.monotonic() - begun
            if time.monotonic() - begun > spec.ready_timeout_s:
                reason = f"was not ready after {spec.ready_timeout_s:.0f} s"
                raise ProcessFailed(self.name, reason, self.log)
            time.sleep(POLL_S)

    def is_alive(self) -> bool:
        """An own child lives until it has an exit code. Its first thread may have ended a moment earlier."""
        return self.identity.is_alive() if self._child is None else self._child.poll() is None

    def exit_code(self) -> int | None:
        """The exit code of an own child that has ended; negative for a signal."""
        return self._child.poll() if self._child is not None else None

    def wait_exit(self, timeout_s: float) -> bool:
        """Wait until it is gone; False when it still runs after `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        while self.is_alive():
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)
        return True

    def stop(self) -> str:
        """Ask it to stop, then make it; returns how it went: `stopped`, `killed` or `gone`."""
        return stop_all([self])[0][1]

    def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        self.identity.send(signal.SIGKILL)
        if not self.wait_exit(KILL_WAIT_S):
            raise ProcessFailed(self.name, "survived SIGKILL: stuck in the kernel", self.log)

    def forget(self) -> None:
        self._record.unlink(missing_ok=True)

    def output(self) -> str:
        """Its output since its start (the first part, if it is long)."""
        with self.log.open("rb") as stream:
            stream.seek(self._log_start)
            return stream.read(LOG_READ_BYTES_MAX).decode(errors="replace")

    def _write_record(self) -> None:
        record = {
            "name": self.name,
            "phase": self.phase,
            "stop_signal": self.stop_signal.name,
            "started_at": _now(),
            "identity": self.identity.to_json(),
        }
        write_json(self._record, record)


def stop_all(processes: Iterable[Running]) -> list[tuple[Running, str]]:
    """Stop processes that need no order among them, all at once.

    Each gets its stop signal and `STOP_GRACE_S` to obey, then SIGKILL. The result is `stopped`, `killed` or, if it had
    ended before, `gone` for each; records of ended processes are removed.
    """
    asked = [(running, running.identity.send(running.stop_signal)) for running in processes]
    deadline = time.monotonic() + STOP_GRACE_S
    results = []
    for running, was_there in asked:
        how = "stopped" if was_there else "gone"
        if was_there and not running.wait_exit(max(0.0, deadline - time.monotonic())):
            running.kill()
            how = "killed"
        running.forget()
        results.append((running, how))
    return results


def tail_of(log: Path, lines: int = LOG_TAIL_LINES) -> list[str]:
    try:
        with log.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(0, stream.tell() - LOG_READ_BYTES_MAX))
            return stream.read().decode(errors="replace").splitlines()[-lines:]
    except FileNotFoundError:
        return []


def describe_exit(code: int | None) -> str:
    if code is None:
        return "ended before it was ready"
    if code < 0:
        return f"was ended by {signal.Signals(-code).name} before it was ready"
    meaning = EXIT_CODES.get(code)
    return f"ended with code {code} before it was ready" + (f": {meaning}" if meaning else "")


def _ready_now(spec: ProcessSpec, running: Running) -> bool:
    try:
        return spec.ready(running)
    except OSError:
        return False


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
