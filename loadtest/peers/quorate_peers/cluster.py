"""Three processes of one peer, and the folder they live in."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from quorate_local.options import REPOSITORY

BUILD = REPOSITORY / "build" / "peers"
BINARIES = BUILD / "bin"
LOOPBACK = "127.0.0.1"
READY_S = 120.0  # three JVMs on a machine with other work
FIRST_PORT, ROW_ATTEMPTS = 10_000, 100
KINDS = (socket.SOCK_STREAM, socket.SOCK_DGRAM)
STOP_GRACE_S = 10.0  # a Kafka broker takes more than 4 s
DIED = "{name} ended with code {code} before it was ready; its log ends:\n{tail}"


class PeerFailed(Exception):
    """A peer could not be built or started; the message has the reason."""


class Cluster:
    """Processes started here; all of them end with `stop`, and their data is removed."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        folder.mkdir(parents=True, exist_ok=True)

    def start(self, name: str, command: Sequence[str | Path], **popen: object) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(  # type: ignore[call-overload]
                [str(part) for part in command],
                **{"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log, "cwd": self.folder, **popen},
            )
        self.processes.append(process)
        return process  # type: ignore[no-any-return]

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self.processes]

    def wait_ready(self, is_ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + READY_S
        while True:
            for process in self.processes:
                if process.poll() is not None:
                    raise PeerFailed(DIED.format(name=self.name, code=process.returncode, tail=self._tail()))
            with suppress(OSError):
                if is_ready():
                    return
            if time.monotonic() > deadline:
                raise PeerFailed(f"{self.name} was not ready after {READY_S:.0f} s; its log ends:\n{self._tail()}")
            time.sleep(0.1)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(how)
        deadline = time.monotonic() + STOP_GRACE_S
        for process in self.processes:
            try:
                process.wait(max(deadline - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(5)
        self.processes.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    def kept_bytes(self) -> int:
        """Size of its data on disk, or in memory."""
        paths = (Path(folder) / name for folder, _, names in os.walk(self.folder) for name in names)
        return sum(_allocated_bytes(path) for path in paths)

    def _tail(self) -> str:
        logs = sorted(self.folder.glob("*.log"), key=lambda path: path.stat().st_mtime)
        return logs[-1].read_text(errors="replace")[-1500:] if logs else "(nothing)"


def _allocated_bytes(path: Path) -> int:
    try:
        return path.lstat().st_blocks * 512
    except FileNotFoundError:  # deleted by the peer meanwhile
        return 0


def free_ports(count: int) -> list[int]:
    """Ports that no process uses now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind((LOOPBACK, 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def free_row_of_ports(count: int) -> int:
    """The first of `count` ports in a row that no process uses now, neither by TCP nor by UDP.

    The row lies below the kernel's ephemeral ports, so no other process takes one of them meanwhile.
    """
    ceiling = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for _ in range(ROW_ATTEMPTS):
        first = random.randrange(FIRST_PORT, max(ceiling, FIRST_PORT + 10_000) - count)
        if all(_is_free(port, kind) for port in range(first, first + count) for kind in KINDS):
            return first
    raise PeerFailed(f"found no {count} free ports in a row")


def _is_free(port: int, kind: socket.SocketKind) -> bool:
    with socket.socket(socket.AF_INET, kind) as one:
        try:
            one.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def accepts(port: int) -> bool:
    with socket.create_connection((LOOPBACK, port), timeout=1):
        return True


def build_go(name: str, package: str) -> None:
    _run(["go", "build", "-trimpath", "-o", BINARIES / name, package], Path(__file__).parents[1] / "go")


def build_java(peer: str) -> None:
    """Puts the peer's libraries into `lib` by Maven, and the load client (and node) into `classes`."""
    source = Path(__file__).parents[1] / "java"
    folder = BUILD / peer
    (folder / "classes").mkdir(parents=True, exist_ok=True)
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder / 'lib'}"]
    _run(["mvn", "-q", "-B", *goal], source / peer)
    files = [source / "window" / "Window.java", *sorted((source / peer).glob("*.java"))]
    _run(["javac", "-nowarn", "-cp", f"{folder}/lib/*", "-d", folder / "classes", *files], source)


def java(peer: str, *arguments: str | Path) -> list[str]:
    """A JVM with the peer's libraries and the load client's classes."""
    folder = BUILD / peer
    return ["java", "-cp", f"{folder}/classes:{folder}/lib/*", *(str(argument) for argument in arguments)]


def _run(command: Sequence[str | Path], folder: Path) -> None:
    try:
        done = subprocess.run(
            [str(part) for part in command], cwd=folder, capture_output=True, text=True, timeout=900, check=False
        )
    except FileNotFoundError:
        raise PeerFailed(f"{command[0]} is needed to build a peer and was not found; install it") from None
    if done.returncode != 0:
        said = (done.stdout + done.stderr)[-1500:]
        raise PeerFailed(f"{' '.join(map(str, command))} failed with code {done.returncode}:\n{said}")


def memory_folder(name: str) -> Path:
    """A folder on tmpfs: for a peer without an in-memory mode."""
    return Path("/dev/shm") / f"quorate-peers-{os.getpid()}-{name}"


def disk_folder(name: str) -> Path:
    return BUILD / "run" / f"{os.getpid()}-{name}"
