"""Undoes the unsynced changes of a killed process, by the undo logs of unsynced.c.

After a power loss, a disk has each sector as of the last sync or of any later change. The kernel's journal keeps the
order of changes of names: the last ones of a folder since its sync are lost, from none to all.
"""

from __future__ import annotations

import os
import random
import struct
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

SECTOR = 512
# all: everything is lost. some: each write is lost or not, by itself. torn: likewise each sector of each write.
MODES = ("all", "some", "torn")
_HEAD = struct.Struct("=IIqqqqq")
_MAGIC = 0x51554E44
_WRITE, _RESIZE, _CREATE, _UNLINK, _RENAME, _MKDIR, _RMDIR = range(1, 8)
_ODDS = (0.1, 0.5, 0.9)  # odds that a change is there nevertheless


@dataclass(frozen=True)
class Change:
    """One entry of an undo log. `struct record` in unsynced.c describes `a` and `b`."""

    kind: int
    a: int
    b: int
    old_size: int
    start: int
    before: bytes


@dataclass
class Rolled:
    """Numbers of unsynced changes, and of lost ones."""

    changes: int = 0
    lost: int = 0
    files: int = 0
    names: int = 0

    def __str__(self) -> str:
        return f"{self.lost} of {self.changes} unsynced changes of {self.files} files lost, {self.names} of names"


def roll_back(data: Path, undo: Path, choice: random.Random, mode: str) -> Rolled:
    """Undo changes: `data` is then a possible disk after a power cut, all of it durable; `undo` has only `control`."""
    assert mode in MODES, f"{mode} is a way of losing power"
    logs = {int(path.name[len("log-") :]): read_log(path) for path in undo.glob("log-*") if "new" not in path.name}
    rolled = Rolled()
    _roll_back_names(undo, logs, choice, mode, rolled)
    for path in sorted(path for path in data.rglob("*") if path.is_file() and not path.is_symlink()):
        changes = logs.get(path.stat().st_ino, [])
        if changes:
            rolled.files += 1
            rolled.changes += len(changes)
            rolled.lost += roll_back_file(path, changes, choice, mode)
    for path in undo.iterdir():
        if path.name != "control":
            path.unlink()
    return rolled


def read_log(path: Path) -> list[Change]:
    """The entries of a log. An incomplete one was being written when the process was killed: it has no change."""
    text, at, changes = path.read_bytes(), 0, []
    while at + _HEAD.size <= len(text):
        magic, kind, a, b, old_size, start, length = _HEAD.unpack_from(text, at)
        end = at + _HEAD.size + length
        assert magic == _MAGIC, f"{path} is an undo log"
        if end > len(text):
            break
        changes.append(Change(kind, a, b, old_size, start, text[at + _HEAD.size : end]))
        at = end
    return changes


# -- files --------------------------------------------------------------------------------------


def roll_back_file(path: Path, changes: list[Change], choice: random.Random, mode: str) -> int:
    """Undo changes of one file; answers the number with a loss."""
    odds = 0.0 if mode == "all" else choice.choice(_ODDS)
    survives = [choice.random() < odds for _ in changes]
    touched: dict[int, list[tuple[int, bytes]]] = defaultdict(list)  # sector: changes and the bytes before them
    for number, change in enumerate(changes):
        for sector in _sectors(change):
            at = sector * SECTOR - change.start
            touched[sector].append((number, change.before[at : at + SECTOR].ljust(SECTOR, b"\0")))
    torn: set[int] = set()
    with path.open("r+b") as file:
        for sector, versions in touched.items():
            survivors = [choice.random() < odds if mode == "torn" else survives[number] for number, _ in versions]
            torn.update(number for (number, _), kept in zip(versions, survivors, strict=True) if not kept)
            last = max((place for place, kept in enumerate(survivors) if kept), default=-1)
            if last + 1 < len(versions):  # otherwise the present bytes stay
                file.seek(sector * SECTOR)
                file.write(versions[last + 1][1])
        file.flush()
        os.ftruncate(file.fileno(), _size(changes, survives))
    return len(torn | {number for number, kept in enumerate(survives) if not kept})


def _sectors(change: Change) -> range:
    """The sectors that the change touched."""
    if change.kind == _WRITE:
        return range(change.a // SECTOR, -(-(change.a + change.b) // SECTOR))
    if change.kind == _RESIZE and change.a < change.old_size:
        return range(change.a // SECTOR, -(-change.old_size // SECTOR))
    return range(0)


def _size(changes: list[Change], survives: list[bool]) -> int:
    size = changes[0].old_size
    for change, kept in zip(changes, survives, strict=True):
        if kept and change.kind == _WRITE:
            size = max(size, change.a + change.b)
        elif kept and change.kind == _RESIZE:
            size = change.a
    return size


# -- names --------------------------------------------------------------------------------------


def _roll_back_names(
    undo: Path, logs: dict[int, list[Change]], choice: random.Random, mode: str, rolled: Rolled
) -> None:
    remade: dict[int, Path] = {}  # restored folders, by their former inodes
    folders = {inode: changes for inode, changes in logs.items() if changes and changes[0].kind >= _CREATE}
    in_order = sorted((_names(changes[0])[0], inode) for inode, changes in folders.items())
    for name, inode in in_order:  # a folder before its content
        folder, changes = Path(name), folders[inode]
        is_there = remade.get(inode) == folder or (folder.is_dir() and folder.stat().st_ino == inode)
        if not is_there:
            continue
        lost = len(changes) if mode == "all" else choice.randint(0, len(changes))
        for change in reversed(changes[len(changes) - lost :]):
            _take_back(folder, change, undo, remade)
        rolled.names += lost


def _take_back(folder: Path, change: Change, undo: Path, remade: dict[int, Path]) -> None:
    """Undo one change of a name. A change that was logged and not made, because of the kill, is skipped."""
    _, last, target = _names(change)
    path, held = folder / last, undo / f"held-{change.b}"
    if change.kind == _CREATE:
        path.unlink(missing_ok=True)
    elif change.kind == _MKDIR:
        _remove_tree(path)
    elif change.kind == _UNLINK and not path.exists():
        os.link(held, path)
    elif change.kind == _RMDIR and not path.exists():
        path.mkdir()
        remade[change.a] = path
    elif change.kind == _RENAME and not path.exists():
        new = folder / target
        if new.exists() and new.stat().st_ino == change.a:
            new.rename(path)
            if change.b:
                os.link(held, new)


def _remove_tree(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    with suppress(FileNotFoundError):
        folder.rmdir()


def _names(change: Change) -> tuple[str, str, str]:
    """The folder, a name in it, and a renamed file's new name."""
    folder, last, target, _ = change.before.split(b"\0")
    return folder.decode(), last.decode(), target.decode()
