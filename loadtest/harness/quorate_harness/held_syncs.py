"""Syncs of one server that take a known time more, or do not return: a library in C, preloaded into all servers."""

from __future__ import annotations

import struct
from pathlib import Path

from quorate_local.native import compile_preload

_SOURCE = Path(__file__).with_name("held_syncs.c")
_CONTROL = struct.Struct("=II")
_FOR_EVER = 0xFFFF_FFFF


class HeldSyncs:
    """Control over the processes that are started with `environment`. `CannotCompile` without a C compiler."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder.resolve() / "held-syncs"
        self._library = folder.resolve() / "held_syncs.so"
        self._file.write_bytes(bytes(_CONTROL.size))
        compile_preload(_SOURCE, self._library)

    def environment(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self._library), "HELD_SYNCS_FILE": str(self._file)}

    def hang(self, pid: int) -> None:
        """From now on the process's syncs do not return, until `release`."""
        self._set(pid, _FOR_EVER)

    def slow(self, pid: int, delay_us: int) -> None:
        """From now on each of the process's syncs takes so much longer."""
        self._set(pid, delay_us)

    def release(self) -> None:
        """Syncs that are held return, too."""
        self._set(0, 0)

    def _set(self, pid: int, delay_us: int) -> None:
        with self._file.open("r+b") as stream:  # the processes have this very file mapped
            stream.write(_CONTROL.pack(pid, delay_us))
