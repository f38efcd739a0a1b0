"""A processor that others take away: a busy process on the same core, whose share cgroup v1 sets."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path

from quorate_harness import cgroups

ROOT = Path("/sys/fs/cgroup/cpu")
SERVER_SHARES = 1_024


def missing() -> str | None:
    """The reason why this machine cannot share out a core; None if it can."""
    if not (ROOT / "cpu.shares").exists():
        return f"the kernel has no cgroup v1 hierarchy with the cpu controller at {ROOT}"
    if len(os.sched_getaffinity(0)) < 2:
        return "one core is for the server, and another for its load"
    return None


class Hog:
    """Takes `core` from the processes put beside it. `name` names the run. `remove` at the end."""

    def __init__(self, name: str, core: int) -> None:
        self._core = core
        self._server, self._own = (ROOT / f"quorate-{name}-{part}" for part in ("server", "hog"))
        self._busy: subprocess.Popen[bytes] | None = None

    def beside(self, pid: int) -> None:
        """The process, with all its threads, stays on the core from now on."""
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(ProcessLookupError):  # it has just ended
                os.sched_setaffinity(int(thread), {self._core})
        _enter(self._server, SERVER_SHARES, pid)

    def take(self, times: int) -> None:
        """As much as the processes beside it, this many times; 0: nothing."""
        self._stop()
        if times:
            command = ["sh", "-c", "while :; do :; done"]
            self._busy = subprocess.Popen(command, preexec_fn=lambda: os.sched_setaffinity(0, {self._core}))
            _enter(self._own, times * SERVER_SHARES, self._busy.pid)

    def remove(self) -> None:
        """After the processes beside it have ended, or end now."""
        self._stop()
        for group in (self._server, self._own):
            cgroups.remove(group)

    def _stop(self) -> None:
        if self._busy is not None:
            self._busy.kill()
            self._busy.wait()
            self._busy = None


def _enter(group: Path, shares: int, pid: int) -> None:
    group.mkdir(exist_ok=True)
    (group / "cpu.shares").write_text(str(shares))
    (group / "cgroup.procs").write_text(str(pid))
