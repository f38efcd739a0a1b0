"""Identity of a process: its pid together with its start time.

A pid alone is not an identity, because the kernel reuses pids. A signal is sent through a pidfd that was opened before
the start time was compared. So it cannot hit a process that took the pid between the comparison and the signal.
"""

from __future__ import annotations

import os
import signal
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_STATE_FIELD = 0  # field of /proc/<pid>/stat after the command name, which may hold spaces
_START_TICKS_FIELD = 19
_DEAD_STATES = frozenset("ZXx")


@dataclass(frozen=True)
class Identity:
    """One run of one process, unique on this machine also after a reboot."""

    pid: int
    start_ticks: int
    boot_id: str

    @classmethod
    def of(cls, pid: int) -> Identity:
        """The identity of a running process; `ProcessLookupError` without one."""
        fields = _stat_fields(pid)
        return cls(pid, int(fields[_START_TICKS_FIELD]), _boot_id())

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Identity:
        return cls(int(value["pid"]), int(value["start_ticks"]), str(value["boot_id"]))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def is_alive(self) -> bool:
        """Whether this process still runs; a zombie does not."""
        try:
            fields = _stat_fields(self.pid)
        except ProcessLookupError:
            return False
        same_run = int(fields[_START_TICKS_FIELD]) == self.start_ticks
        return same_run and fields[_STATE_FIELD] not in _DEAD_STATES and self.boot_id == _boot_id()

    def send(self, sig: signal.Signals) -> bool:
        """Send `sig` to this process; False if it is gone."""
        try:
            pidfd = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return False
        try:
            if not self.is_alive():
                return False
            signal.pidfd_send_signal(pidfd, sig)
            return True
        except ProcessLookupError:
            return False
        finally:
            os.close(pidfd)

    def memory_bytes(self) -> tuple[int, int] | None:
        """(resident now, greatest resident so far) in bytes; None when the process is gone."""
        try:
            status = Path(f"/proc/{self.pid}/status").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return None
        if not self.is_alive():
            return None
        values = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        if "VmRSS" not in values:
            return None
        return _kib(values["VmRSS"]), _kib(values["VmHWM"])


def _kib(value: str) -> int:
    return int(value.split()[0]) * 1024


def _stat_fields(pid: int) -> list[str]:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError) as error:
        raise ProcessLookupError(f"no process {pid}") from error
    return stat[stat.rindex(")") + 2 :].split()


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
