"""The load with its history, the read-back of every replica, and the checker, as processes."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from quorate_chaos.coordinators import Unready
from quorate_chaos.fleet import Fleet
from quorate_local.components import binary
from quorate_local.options import REPOSITORY, StackOptions

CHECKER = REPOSITORY / "build" / "bin" / "quorate-chaos-check"  # infra/setup/go.sh
HANDLES_EVERY_S = 0.25
END_GRACE_S = 20.0  # beyond the deadlines of outstanding operations
READBACK_TIMEOUT_S = 60.0
CHECK_TIMEOUT_S = 180.0
RECOVERED_S = 1.5
# Clients of one history have different numbers.
CROWD_FIRST_CLIENT = 500
RECOVERED_FIRST_CLIENT = 1000
LIGHT = ("--light", "--appenders", "1", "--batches-per-s", "8", "--batch-entries-max", "8")


class LoadFailed(Exception):
    """The load generator or the checker failed; nothing was judged."""


class Load:
    """`quorate-load history` over these groups. Meanwhile all handles follow the coordinator's view, unless another
    load of the fleet has them follow."""

    def __init__(
        self,
        fleet: Fleet,
        groups: Iterable[str],
        out: Path,
        seconds: float,
        seed: int,
        entry_bytes: int,
        first_client: int = 0,
        is_light: bool = False,
        is_second: bool = False,
    ) -> None:
        self._fleet = fleet
        self._seconds = seconds
        self._ended = threading.Event()
        self._is_second = is_second
        self._command = [binary(StackOptions(), "quorate-load"), "history", "--out", str(out)]
        for name in groups:
            self._command += ["--handle", str(fleet.handle_file(name))]
        self._command += ["--seconds", str(seconds), "--seed", str(seed), "--size", str(entry_bytes)]
        self._command += ["--first-client", str(first_client), *(LIGHT if is_light else ())]

    def start(self) -> None:
        if not self._is_second:
            self._fleet.write_handles()
        self._child = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self._follower = threading.Thread(target=self._follow, daemon=True)
        self._follower.start()

    def wait(self) -> None:
        try:
            output, _ = self._child.communicate(timeout=self._seconds + END_GRACE_S)
        except subprocess.TimeoutExpired as error:
            self._child.kill()
            raise LoadFailed("the load did not end in time") from error
        finally:
            self._ended.set()
            self._follower.join()
        if self._child.returncode != 0:
            raise LoadFailed(f"the load ended with code {self._child.returncode}: {output[-2000:]}")

    def _follow(self) -> None:
        while not self._is_second and not self._ended.wait(HANDLES_EVERY_S):
            with suppress(OSError, Unready):  # without the coordinator, clients continue with their handles
                self._fleet.write_handles()


def read_back(fleet: Fleet, names: list[str], out: Path) -> None:
    """Record every replica's whole log of these groups, behind the history."""
    if not names:
        return
    command = [binary(StackOptions(), "quorate-load"), "readback", "--out", str(out)]
    for name in names:
        command += ["--handle", str(fleet.handle_file(name))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=READBACK_TIMEOUT_S, check=False)
    if done.returncode not in (0, 1):  # 1: a replica's log is not complete, which the checker explains
        raise LoadFailed(f"reading back ended with code {done.returncode}: {done.stderr[-2000:]}")


def check(history: Path, lost: set[str], folder: Path) -> tuple[bool, list[dict[str, Any]], str]:
    """(clean, report of each group, the checker's output)."""
    report = folder / "report.json"
    command = [str(CHECKER), "-lost", ",".join(sorted(lost))]
    command += ["-pictures", str(folder), "-json", str(report), str(history)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=CHECK_TIMEOUT_S, check=False)
    if done.returncode not in (0, 1):
        raise LoadFailed(f"the checker could not judge: {done.stderr[-2000:]}")
    return done.returncode == 0, json.loads(report.read_text()), done.stdout
