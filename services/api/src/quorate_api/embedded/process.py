"""Shared by the two embedded servers: finding them, free ports, passwords, stopping by pid."""

import contextlib
import importlib.util
import os
import secrets
import signal
import socket
import time
from pathlib import Path


class EmbeddedError(RuntimeError):
    """The server could not be started or stopped. The text is for people."""


def package_dir(package: str, distribution: str) -> Path:
    """Folder of an installed package, without importing it (imports here have side effects)."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise EmbeddedError(
            f"The Python package {distribution} is not installed, so there is no embedded server. "
            "Install services/api/requirements-dev.txt, or set DATABASE_URL and REDIS_URL to servers of your own."
        )
    return Path(spec.origin).parent


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# A killed process is gone before its last thread has released the port.
PORT_WAIT_S = 2.0


def port_in_use(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
        return False


def choose_port(asked: int, remembered: Path) -> int:
    """The requested port, else the previous one so that URLs survive a restart, else a free one."""
    if asked:
        return asked
    with contextlib.suppress(OSError, ValueError):
        port = int(remembered.read_text())
        deadline = time.monotonic() + PORT_WAIT_S
        while port_in_use(port) and time.monotonic() < deadline:
            time.sleep(0.01)
        if not port_in_use(port):
            return port
    return free_port()


def secret_file(path: Path) -> str:
    """The password in `path`. Creates the file (0600) if it is absent."""
    with contextlib.suppress(FileNotFoundError):
        return path.read_text().strip()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        password = secrets.token_hex(16)
        file.write(password)
    return password


def alive(pid: int, command: str) -> bool:
    """Whether `pid` runs `command`: a pid from a file may belong to another process by now."""
    try:
        name = Path(f"/proc/{pid}/comm").read_text().strip()
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return name.startswith(command) and state != "Z"


def end(pid: int, command: str, signals: list[tuple[signal.Signals, float]]) -> None:
    """Send each signal in turn until the process is gone. Waits the given seconds after each."""
    for signal_number, wait_s in signals:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal_number)
        deadline = time.monotonic() + wait_s
        while time.monotonic() < deadline:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
            if not alive(pid, command):
                return
            time.sleep(0.02)
    raise EmbeddedError(f"{command} (pid {pid}) does not stop. End it by hand: kill -9 {pid}")


def log_tail(path: Path, lines: int = 12) -> str:
    with contextlib.suppress(OSError):
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
    return "(no log)"
