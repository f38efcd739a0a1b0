"""A server's telemetry while Redis is away for a day: its disk keeps it, and sends each window afterwards, once."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redis import Redis

from quorate_api.embedded import redis
from quorate_api.telemetry.records import read
from quorate_api.telemetry.windows import Key
from quorate_api.worker.ingest import STORED_KEY, STREAM
from quorate_harness.figures import Figure
from quorate_harness.fleet import MeasurementFailed
from quorate_local import StackOptions
from quorate_local.components import binary
from quorate_local.display import Display

HOURS, QUICK_HOURS = 24, 1
REPLICAS = 1_000
MEMORY_MIB = 128
AT_ONCE = 200
TIMEOUT_S = 1_800
SUMS = ("offered_entries", "read_entries", "active_ms", "committed_entries")


@dataclass(frozen=True)
class Sums:
    """`windows`: of all replicas. The other sums count each window once."""

    windows: int
    offered_entries: int
    read_entries: int
    active_ms: int
    committed_entries: int

    @classmethod
    def of(cls, told: dict[str, Any]) -> Sums:
        return cls(told["windows"], *(told[name] for name in SUMS))


class Taken:
    """The stream's reader in the place of the worker: it keeps the greatest of each counter of a window."""

    def __init__(self) -> None:
        self._windows: dict[Key, tuple[int, int, int]] = {}
        self._committed: dict[str, int] = {}
        self.records = 0

    def take(self, entry_id: bytes, data: bytes) -> None:
        found, rejected = read(entry_id.decode(), data)
        if rejected:
            raise MeasurementFailed(f"a record does not follow the contract: {rejected[0].reason}")
        for each in found:
            window = each.window
            counts = (window.offered_entries, window.read_entries, window.active_ms)
            had = self._windows.get(window.key, (0, 0, 0))
            self._windows[window.key] = (max(had[0], counts[0]), max(had[1], counts[1]), max(had[2], counts[2]))
            committed = self._committed.get(window.group_id, 0)
            self._committed[window.group_id] = max(committed, window.committed_entries)
            self.records += 1

    def sums(self) -> Sums:
        offered, reads, active = (sum(column) for column in zip(*self._windows.values(), strict=True))
        return Sums(len(self._windows), offered, reads, active, sum(self._committed.values()))


def measure(folder: Path, display: Display, quick: bool) -> list[Figure]:
    hours = QUICK_HOURS if quick else HOURS
    state = folder / "outage"
    shutil.rmtree(state, ignore_errors=True)
    url = redis.start(state / "redis")
    redis.stop(state / "redis")
    with _player(state, url, hours) as player:
        played = _told(player, "played")
        display.line(
            f"    {hours} h of {REPLICAS} replicas: {played['spooled_bytes'] / 1e6:.0f} MB on the disk,"
            f" {played['memory_bytes'] / 2**20:.0f} MiB of memory"
        )
        redis.start(state / "redis")
        try:
            assert player.stdin is not None, "it has a pipe"
            player.stdin.write("\n")
            player.stdin.flush()
            taken = _take_all(url, player)
        finally:
            redis.stop(state / "redis")
        sent = _told(player, "sent")
    expected, found = Sums.of(sent), taken.sums()
    if expected != found:
        display.line(f"    expected {expected}, found {found}")
    shutil.rmtree(state)
    return figures(hours, expected == found, sent, taken.records)


def figures(hours: int, is_whole: bool, sent: dict[str, Any], records: int) -> list[Figure]:
    note = f"{REPLICAS} replicas, {sent['windows']} windows in {records} records; Redis away, then back"
    survived = hours if is_whole else 0
    memory_mib = sent["memory_bytes"] / 2**20
    return [
        Figure("telemetry_outage_hours_survived", survived, "h", HOURS, more_is_better=True, note=note),
        Figure("telemetry_outage_memory_mib", round(memory_mib), "MiB", MEMORY_MIB, note="of the whole process"),
    ]


@contextmanager
def _player(state: Path, url: str, hours: int) -> Iterator[subprocess.Popen[str]]:
    command = [str(binary(StackOptions(), "quorate-load")), "telemetry", "--folder", str(state / "spool")]
    command += ["--redis", url, "--hours", str(hours), "--replicas", str(REPLICAS)]
    with (state.parent / "outage.log").open("wb") as log:
        player = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        yield player
    finally:
        player.kill()
        player.wait()


def _told(player: subprocess.Popen[str], phase: str) -> dict[str, Any]:
    assert player.stdout is not None, "it has a pipe"
    line = player.stdout.readline()
    if not line:
        raise MeasurementFailed(f"the player ended with {player.wait(10)} before it had {phase}")
    told: dict[str, Any] = json.loads(line)
    assert told["phase"] == phase, told
    return told


def _take_all(url: str, player: subprocess.Popen[str]) -> Taken:
    """Until the player has ended, and nothing is left."""
    taken, last = Taken(), b"0"
    deadline = time.monotonic() + TIMEOUT_S
    with Redis.from_url(url) as bus:
        while True:
            is_last = player.poll() is not None
            entries: Any = bus.xread({STREAM: last}, count=AT_ONCE, block=100)
            for entry_id, fields in entries[0][1] if entries else []:
                taken.take(entry_id, fields[b"d"])
                last = entry_id
            bus.set(STORED_KEY, last if last != b"0" else b"0-0")
            if is_last and not entries:
                return taken
            if time.monotonic() > deadline:
                raise MeasurementFailed(f"not everything was sent within {TIMEOUT_S} s")
