"""Synced writes survive a power cut, unsynced ones may be lost, and a lying sync is found."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorate_chaos import machine
from quorate_chaos.power import MODES, Power, Rolled, Unseen
from quorate_chaos.power.rollback import read_log, roll_back_file
from quorate_local.options import REPOSITORY

FOLDER = REPOSITORY / "build" / "chaos" / "power-test"  # a disk, where /tmp may be none
BEGIN = "import os, signal, sys\n"
BEGIN += "flags = os.O_RDWR | os.O_CREAT\n"
BEGIN += "def sync_folder(path='.'):\n  folder = os.open(path, os.O_RDONLY); os.fsync(folder); os.close(folder)\n"
END = "os.kill(os.getpid(), signal.SIGKILL)\n"


class Machine:
    """One process after another on a data folder; each ends by kill -9."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.data.mkdir(parents=True)
        self.power = Power(folder)
        self.power.add("one", self.data)

    def start(self, script: str) -> subprocess.Popen[str]:
        command = ["env", *(f"{key}={value}" for key, value in self.power.environment("one").items())]
        command += [sys.executable, "-I", "-S", "-c", BEGIN + script]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        return subprocess.Popen(command, cwd=self.data, text=True, **pipes)  # type: ignore[call-overload,no-any-return]

    def run(self, script: str) -> None:
        with self.start(script + END) as child:
            assert child.wait(20) == -9

    def cut(self, mode: str = "all", seed: int = 1) -> Rolled:
        return self.power.cut("one", random.Random(seed), mode)

    def holds(self) -> dict[str, bytes]:
        files = [path for path in self.data.rglob("*") if path.is_file()]
        return {str(path.relative_to(self.data)): path.read_bytes() for path in files}


@pytest.fixture
def one(request: pytest.FixtureRequest) -> Iterator[Machine]:
    folder = FOLDER / request.node.name
    shutil.rmtree(folder, ignore_errors=True)
    yield Machine(folder)
    shutil.rmtree(folder)


FILE = "file = os.open('file', flags); os.pwrite(file, b'a' * 2048, 0); os.fsync(file); sync_folder()\n"


def test_synced_writes_survive_and_later_ones_are_lost(one: Machine) -> None:
    one.run(FILE + "os.pwrite(file, b'b' * 100, 1000); os.pwrite(file, b'c' * 100, 5000); os.ftruncate(file, 300)\n")
    assert one.holds() == {"file": b"a" * 300}, "a kill alone loses nothing"
    rolled = one.cut()
    assert (rolled.changes, rolled.lost, rolled.files) == (3, 3, 1)
    assert one.holds() == {"file": b"a" * 2048}
    assert one.cut().changes == 0, "the rest is durable"


def test_a_truncation_by_an_open_is_lost_too(one: Machine) -> None:
    one.run(FILE + "os.write(os.open('file', os.O_WRONLY | os.O_TRUNC), b'new')\n")
    one.cut()
    assert one.holds() == {"file": b"a" * 2048}


def test_pages_past_the_page_cache_are_lost_too(one: Machine) -> None:
    direct = FILE.replace("2048", "8192")
    direct += "import mmap; page = mmap.mmap(-1, 4096); page.write(b'd' * 4096)\n"
    direct += "past = os.open('file', flags | os.O_DIRECT); os.pwritev(past, [page], 4096)\n"
    one.run(direct)
    assert one.holds() == {"file": b"a" * 4096 + b"d" * 4096}
    one.cut()
    assert one.holds() == {"file": b"a" * 8192}
    one.run(direct + "os.fdatasync(past)\n")
    one.cut()
    assert one.holds() == {"file": b"a" * 4096 + b"d" * 4096}


def test_each_sector_is_as_the_sync_or_any_write_since_left_it(one: Machine) -> None:
    one.run(FILE + "for byte in b'bcd': os.pwrite(file, bytes([byte]) * 1536, 512)\n")
    path, copy = one.data / "file", one.data.parent / "copy"
    changes = read_log(one.power.undo("one") / f"log-{path.stat().st_ino}")
    seen: dict[str, set[bytes]] = {mode: set() for mode in MODES}
    for mode in MODES:
        for seed in range(60):
            shutil.copy(path, copy)
            roll_back_file(copy, changes, random.Random(seed), mode)
            text = copy.read_bytes()
            sectors = [text[at : at + 512] for at in range(0, 2048, 512)]
            assert sectors[0] == b"a" * 512
            assert all(len(set(sector)) == 1 for sector in sectors)
            seen[mode].add(bytes(sector[0] for sector in sectors[1:]))
    assert seen["all"] == {b"aaa"}
    assert seen["some"] == {b"aaa", b"bbb", b"ccc", b"ddd"}
    assert any(len(set(sectors)) > 1 for sectors in seen["torn"])


def test_names_are_kept_by_a_sync_of_their_folder_and_by_nothing_else(one: Machine) -> None:
    names = "os.write(os.open('new', flags), b'n'); os.mkdir('folder'); os.write(os.open('folder/in', flags), b'i')\n"
    names += "os.rename('file', 'moved'); os.write(os.open('file', flags), b'second'); os.rename('new', 'file')\n"
    names += "os.unlink('moved')\n"
    one.run(FILE + names)
    assert one.holds() == {"file": b"n", "folder/in": b"i"}
    assert one.cut().names == 6, "and the folder's content went with it"
    assert one.holds() == {"file": b"a" * 2048}
    one.run(names + "sync_folder(); sync_folder('folder')\n")
    assert one.cut().names == 0
    assert one.holds() == {"file": b"", "folder/in": b""}, "names are there, and unsynced content is not"


def test_a_removed_folder_returns_with_its_content(one: Machine) -> None:
    make = "os.mkdir('f'); file = os.open('f/in', flags); os.write(file, b'i'); os.fsync(file)\n"
    one.run(FILE + make + "sync_folder('f'); sync_folder(); import shutil; shutil.rmtree('f')\n")
    assert set(one.holds()) == {"file"}
    one.cut()
    assert one.holds() == {"file": b"a" * 2048, "f/in": b"i"}


def test_a_new_process_does_not_make_the_killed_one_s_writes_durable(one: Machine) -> None:
    one.run(FILE + "os.pwrite(file, b'b', 0)\n")
    one.run("file = os.open('file', flags); assert os.pread(file, 1, 0) == b'b'; os.pwrite(file, b'c', 1)\n")
    one.cut()
    assert one.holds() == {"file": b"a" * 2048}
    one.run(FILE + "os.pwrite(file, b'b', 0)\n")
    one.run("os.fdatasync(os.open('file', flags))\n")
    one.cut()
    assert one.holds() == {"file": b"b" + b"a" * 2047}, "a sync covers every earlier write"


def test_a_sync_does_not_cover_writes_during_it(one: Machine) -> None:
    one.power.delay(400_000)
    late = "import threading, time; os.pwrite(file, b'b', 0)\n"
    late += "thread = threading.Thread(target=lambda: os.fdatasync(file)); thread.start()\n"
    late += "time.sleep(0.15); os.pwrite(file, b'c', 1); thread.join()\n"
    one.run(FILE + late)
    assert one.cut().lost == 1
    assert one.holds() == {"file": b"b" + b"a" * 2047}


def test_a_lying_sync_covers_nothing_until_the_power_is_back(one: Machine) -> None:
    one.run(FILE)
    one.power.lie("one")
    again = "file = os.open('file', flags); os.pwrite(file, b'b', 0); os.fsync(file)\n"
    one.run(again)
    one.cut()
    assert one.holds() == {"file": b"a" * 2048}
    one.run(again)
    one.cut()
    assert one.holds() == {"file": b"b" + b"a" * 2047}


WAIT = "print('ready', flush=True); sys.stdin.readline()\n"


@pytest.mark.parametrize(
    ("write", "is_seen"),
    [
        ("os.pwrite(file, b'b' * 100, 0)\n", True),
        ("import ctypes; ctypes.CDLL(None).syscall(18, file, b'b' * 100, 100, 0)\n", False),
    ],
    ids=["libc", "kernel"],
)
def test_a_write_past_the_library_is_noticed(one: Machine, write: str, is_seen: bool) -> None:
    with one.start(FILE + write + WAIT) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        assert child.stdout.readline() == "ready\n"
        if is_seen:
            one.power.check("one")
        else:
            with pytest.raises(Unseen, match="by the kernel's count"):
                one.power.check("one")
        child.stdin.close()


def test_a_process_without_the_library_is_noticed(one: Machine) -> None:
    with pytest.raises(Unseen, match="without the library"):
        one.power.check("one")


@pytest.mark.timeout(150)
def test_servers_with_lying_syncs_lose_acknowledged_entries_and_the_checker_reports_it() -> None:
    machine.require()
    folder = REPOSITORY / "build" / "chaos" / "lying-test"
    command = machine.inside([sys.executable, "-m", "quorate_chaos.run", "lying_syncs", "1", str(folder), "9"])
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=140, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    found = json.loads((folder / "run.json").read_text())
    assert not found["trouble"], found["trouble"]
    disk = next(group for group in found["groups"] if group["group"] == "disk")
    assert not disk["clean"]
    assert "no acked entry lost" in found["text"]
    shutil.rmtree(folder)
