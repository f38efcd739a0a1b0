"""Disks that are full, empty or wrong."""

from __future__ import annotations

import os
import random
import shutil
from contextlib import suppress
from pathlib import Path

from quorate_chaos.trial import DISK, MEMORY, Fault, Shape, Trial

DISK_BYTES = 384 << 20
FILL_CHUNK_BYTES = 1 << 20
FLIPS = 6
HEAD_BYTES = 8192  # a segment's head (docs/internals/journal.md); a group log's file has half of it


def full_disk(trial: Trial) -> None:
    """Another file takes all free space. The journal has its allocated space, and then no more."""
    victim = trial.random.choice([trial.head(DISK), trial.member(DISK)])
    trial.has_filled.add(victim)
    _fill(trial.fleet.filler(victim))
    trial.say(f"fill the disk of {victim} (of {DISK})")
    trial.pause(7, 9)


def wiped_disk(trial: Trial) -> None:
    """Its journal is gone, its identity is not."""
    victim = trial.member(DISK)
    trial.kill(victim, why=f"of {DISK}, to lose its disk")
    trial.pause(0, 2)
    shutil.rmtree(trial.fleet.journal(victim))
    trial.fleet.start_server(victim)
    trial.say(f"start {victim} with its journal wiped")
    trial.pause(2, 3)


def replaced_disk(trial: Trial) -> None:
    """Everything is gone, the identity too: it joins as a new server, by a new token."""
    victim = trial.member(DISK)
    trial.kill(victim, why=f"of {DISK}, to lose its disk and identity")
    trial.pause(0, 2)
    folder = trial.fleet.layout.server(victim)
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    trial.fleet.mint_join_token(victim)
    trial.fleet.start_server(victim)
    trial.say(f"start {victim} with an empty disk")
    trial.pause(2, 3)


def wiped_and_restarted(trial: Trial) -> None:
    """All servers die; one of them returns without data. The others have everything, and its log must not count."""
    victim = trial.random.choice([trial.head(DISK), trial.member(DISK)])
    names = list(trial.fleet.names)
    trial.kill(*names, why=f"all servers, {victim} to lose its disk")
    shutil.rmtree(trial.fleet.journal(victim))
    order = trial.random.choice([[victim], []])
    for name in order:
        trial.fleet.launch_server(name)
        trial.pause(0, 2)
    trial.fleet.start_servers([name for name in names if name not in order and name != victim])
    if not order:
        trial.pause(0, 2)
        trial.fleet.start_server(victim)
    trial.say(f"start all servers, {victim} with its journal wiped, {'first' if order else 'last'}")
    trial.pause(2, 3)


def bits_of_stopped(trial: Trial) -> None:
    """Bits of a stopped server's durable data flip: none of it may be truncated in silence."""
    victim = trial.member(DISK)
    trial.kill(victim, why=f"of {DISK}, to have bits flipped")
    flipped = flip(trial.fleet.layout.server(victim), trial.random)
    trial.pause(0, 1.5)
    trial.fleet.launch_server(victim)
    trial.say(f"start {victim} with {flipped}")
    trial.pause(3, 4)


def bits_of_running(trial: Trial) -> None:
    """The same below a running server, which notices it when it reads: for a peer, or at its next start."""
    trial.pause(3, 4)  # until the log is longer than the part in memory
    victim = trial.random.choice([trial.tail(DISK), trial.member(DISK)])  # a learner learns from the tail
    flipped = flip(trial.fleet.layout.server(victim), trial.random)
    trial.say(f"{victim} (of {DISK}) runs with {flipped}")
    trial.pause(0, 1)
    other = trial.random.choice([name for name in trial.fleet.chain(DISK) if name != victim] or [victim])
    trial.kill(other, why=f"of {DISK}: a replacement must learn, perhaps from {victim}")
    trial.pause(3, 4)
    if trial.random.random() < 0.5:
        trial.fleet.start_server(other)
        trial.say(f"start {other}")
        trial.fleet.wait_whole_or(10)
        trial.kill(victim, why="to read its damaged disk at its start")
        trial.pause(0, 1)
        trial.fleet.launch_server(victim)
        trial.say(f"start {victim}")
        trial.pause(1, 2)


def flip(data: Path, choice: random.Random) -> str:
    """Flip single bits in the records of a server's journal and group logs, not in merely allocated space."""
    places = []
    for _ in range(FLIPS):
        path, size = choice.choice(_written(data))
        offset = choice.randrange(HEAD_BYTES, size)
        # A running server may have copied and removed a segment since: then nothing is changed.
        with suppress(FileNotFoundError), path.open("r+b") as file:
            file.seek(offset)
            byte = file.read(1)[0]
            file.seek(offset)
            file.write(bytes([byte ^ (1 << choice.randrange(8))]))
            file.flush()
            os.fsync(file.fileno())
            places.append(f"{path.relative_to(data)}+{offset}")
    return f"a bit flipped at {', '.join(places)}"


def _written(data: Path) -> list[tuple[Path, int]]:
    """Files with records, and the ends of the records."""
    found = []
    for path in sorted([*data.glob("journal/segment-*"), *data.glob("groups/*/????????")]):
        with suppress(FileNotFoundError):
            found.append((path, _written_bytes(path)))
    found = [(path, size) for path, size in found if size > HEAD_BYTES]
    assert found, f"{data} holds no records yet"
    return found


def _written_bytes(path: Path) -> int:
    """The end of the last byte that is not zero."""
    data = path.read_bytes()
    return len(data.rstrip(b"\0"))


def _fill(path: Path) -> None:
    chunk = bytes(FILL_CHUNK_BYTES)
    with path.open("wb", buffering=0) as file:
        for size in (FILL_CHUNK_BYTES, 4096):
            try:
                while file.write(chunk[:size]) == size:
                    pass
            except OSError:
                continue


# Larger entries, so that segments become full within the run.
_FILLS_SEGMENTS = Shape(disk_bytes=DISK_BYTES, entry_bytes=2048)
# More than memory keeps, so that a learner receives entries read from disk.
_READS_DISK = Shape(entry_bytes=2048)

FAULTS = [
    Fault("full_disk", "a disk is filled, then freed", full_disk, _FILLS_SEGMENTS),
    Fault("wiped_disk", "a journal is wiped", wiped_disk),
    Fault(
        "wiped_and_restarted",
        "all servers restart, one with its journal wiped",
        wiped_and_restarted,
        may_lose=frozenset({MEMORY}),
    ),
    Fault("replaced_disk", "a disk is replaced by an empty one", replaced_disk),
    Fault("bits_of_stopped", "bits of a stopped server's disk flip", bits_of_stopped),
    Fault(
        "bits_of_running",
        "bits of a running server's disk flip",
        bits_of_running,
        _READS_DISK,
        degrees=(3, 3, 5),
        more_s=9.0,
    ),
]
