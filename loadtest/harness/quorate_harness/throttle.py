"""A disk that is slow for one process: the block layer bounds its writes a second.

It uses the blkio controller of cgroup v1. A cgroup outlives the namespaces of a run, so the run's starter removes it.
The next starter removes one that a killed starter left.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from quorate_harness import cgroups

ROOT = Path("/sys/fs/cgroup/blkio")
WRITES, BYTES = "blkio.throttle.write_iops_device", "blkio.throttle.write_bps_device"
_PREFIX = "quorate-chaos-"


def missing(folder: Path) -> str | None:
    """The reason why this machine cannot slow down the disk of `folder`; None if it can."""
    if not (ROOT / WRITES).exists():
        return f"the kernel has no cgroup v1 hierarchy with the blkio controller at {ROOT}"
    if _device(folder) is None:
        return f"{folder} lies on no block device"
    return None


class Throttle:
    """A throttle for the processes put into it. `folder` lies on the disk, and names the run."""

    def __init__(self, folder: Path) -> None:
        self._disk = folder
        self._group = _group_of(folder)

    def slow(self, pid: int, writes_per_s: int) -> None:
        """From now on the process's writes, and its syncs, wait for their turn."""
        self._limit(WRITES, writes_per_s, pid)

    def narrow(self, pid: int, bytes_per_s: int) -> None:
        """The same, by their bytes."""
        self._limit(BYTES, bytes_per_s, pid)

    def lift(self) -> None:
        if self._group.exists():
            for limit in (WRITES, BYTES):
                self._set(limit, 0)  # none

    def _limit(self, limit: str, per_s: int, pid: int) -> None:
        self._group.mkdir(exist_ok=True)
        self._set(limit, per_s)
        (self._group / "cgroup.procs").write_text(str(pid))

    def _set(self, limit: str, per_s: int) -> None:
        (self._group / limit).write_text(f"{_device(self._disk)} {per_s}")


def remove(folder: Path) -> None:
    """After the run: its processes have ended, or end now."""
    cgroups.remove(_group_of(folder))


def remove_abandoned() -> None:
    """Remove cgroups without processes, left by killed starters."""
    for group in ROOT.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # a run beside this one uses it
            if not (group / "cgroup.procs").read_text().strip():
                group.rmdir()


def _group_of(folder: Path) -> Path:
    return ROOT / (_PREFIX + hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16])


def _device(folder: Path) -> str | None:
    """`major:minor` of the whole disk, since the block layer counts there."""
    existing = folder.resolve()
    while not existing.exists():
        existing = existing.parent
    number = os.stat(existing).st_dev
    block = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if not block.exists():
        return None
    disk = block.resolve().parent if (block / "partition").exists() else block
    return (disk / "dev").read_text().strip()
