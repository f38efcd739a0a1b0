"""The library that logs unsynced changes: built, preloaded, controlled, and checked for writes that it misses."""

from __future__ import annotations

import os
import random
import shutil
import struct
from dataclasses import dataclass
from pathlib import Path

from quorate_chaos.power.rollback import Rolled, roll_back
from quorate_local.native import compile_preload

_SOURCE = Path(__file__).with_name("unsynced.c")
_CONTROL = struct.Struct("=II9Q")
_PAGE_BYTES = 4096
_SAMPLES = 5


class Unseen(Exception):
    """A process changes its files past the library, so that a power cut would prove nothing."""


@dataclass(frozen=True)
class Seen:
    """The library's counts of a process since its start; bytes are of all its writes, of any kind of file."""

    lie: int
    delay_us: int
    pid: int
    wchar_at_start: int
    begun: int
    done: int
    changes: int
    syncs: int
    lies: int
    forgotten: int
    resized_unseen: int


class Power:
    """Control over all processes of a run. `folder` lies on the file system of their data."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve() / "power"
        self._library = self._folder / "unsynced.so"
        self._data: dict[str, Path] = {}

    def add(self, name: str, data: Path) -> None:
        """Assign this data folder to a process, from its first start on."""
        if not self._library.exists():
            self._folder.mkdir(parents=True, exist_ok=True)
            compile_preload(_SOURCE, self._library)
        self._data[name] = data.resolve()
        undo = self.undo(name)
        undo.mkdir(exist_ok=True)
        (undo / "control").write_bytes(bytes(_PAGE_BYTES))

    def environment(self, name: str) -> dict[str, str]:
        return {
            "LD_PRELOAD": str(self._library),
            "POWER_CUT_ROOT": str(self._data[name]),
            "POWER_CUT_UNDO": str(self.undo(name)),
        }

    def lie(self, *names: str) -> None:
        """From now on their syncs succeed and cover nothing, until their power is cut."""
        for name in names:
            self._write(name, 0, 1)

    def delay(self, microseconds: int) -> None:
        """Delay each fdatasync of every process, from now on."""
        for name in self._data:
            self._write(name, 4, microseconds)

    def seen(self, name: str) -> Seen:
        return Seen(*_CONTROL.unpack_from((self.undo(name) / "control").read_bytes()))

    def check(self, name: str) -> None:
        """Raises `Unseen` unless every write of the process went through the library.

        The kernel counts a process's written bytes, to files of any kind, and so does the library: a missed write makes
        the two differ. A missed sync needs no check: it would lose acknowledged writes, which the checker finds.
        """
        for _ in range(_SAMPLES):
            before = self.seen(name)
            if before.pid == 0:
                raise Unseen(f"{name} runs without the library that logs unsynced changes")
            wrote = _wchar(before.pid) - before.wchar_at_start
            after = self.seen(name)
            if not before.done <= wrote <= after.begun:
                raise Unseen(
                    f"{name} wrote {wrote} bytes by the kernel's count, {before.done} to {after.begun} by the library's"
                )
            if ring := _ring_of(before.pid):
                raise Unseen(f"{name} has {ring}, by which it can write past the library")

    def cut(self, name: str, choice: random.Random, mode: str) -> Rolled:
        """Undo the unsynced changes of a killed process, as `mode` says."""
        rolled = roll_back(self._data[name], self.undo(name), choice, mode)
        self._write(name, 0, 0)
        return rolled

    def remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def undo(self, name: str) -> Path:
        """The folder of its undo logs."""
        return self._folder / name

    def _write(self, name: str, at: int, value: int) -> None:
        """Write in place: processes have this file mapped."""
        with (self.undo(name) / "control").open("r+b") as page:
            page.seek(at)
            page.write(struct.pack("=I", value))


def _wchar(pid: int) -> int:
    for line in Path(f"/proc/{pid}/io").read_text().splitlines():
        key, value = line.split(": ")
        if key == "wchar":
            return int(value)
    raise Unseen(f"the kernel does not count what processes write (/proc/{pid}/io)")


def _ring_of(pid: int) -> str | None:
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = os.readlink(link)
        except FileNotFoundError:  # closed meanwhile
            continue
        if "io_uring" in target:
            return target
    return None
