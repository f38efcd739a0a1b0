"""Running one command with a bound in time, its output kept, its whole process group ended with it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from quorate_local.options import REPOSITORY

VENV_BIN = Path(sys.executable).parent
PULUMI_PYTHON = REPOSITORY / "build" / "venv-pulumi" / "bin" / "python"  # infra/setup/pulumi.sh
POLL_S = 0.1
NICENESS = (
    4  # a third of the time where whole stacks want all of it; with less, programs start too late for their tests
)
EXIT_TIMED_OUT = 124  # as timeout(1) answers
EXIT_INTERRUPTED = 130  # as shells answer
EXIT_NOT_FOUND = 127  # as shells answer
PLAIN = {"NO_COLOR": "1", "TERM": "dumb", "CARGO_TERM_COLOR": "never"}  # output goes to a file
# Built once for all tests, with debug assertions (infra/setup/rust.sh).
SERVERS_OF_TESTS = {"QUORATE_BINARIES": str(REPOSITORY / "build" / "checked")}


# Set when people interrupt: running commands end, and no other begins, in whatever thread.
interrupted = threading.Event()


@dataclass(frozen=True)
class Command:
    """`argv[0]` is looked up in the virtual environment first. `needs`: a path that must exist."""

    argv: list[str]
    cwd: str = "."
    needs: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 600.0

    def missing(self) -> str | None:
        """Why it cannot run at all."""
        wanted = self.needs or self.cwd
        return None if (REPOSITORY / wanted).exists() else f"{wanted} is not in this checkout"


@dataclass(frozen=True)
class Finished:
    """`cpu_seconds`: of all its processes that have ended and were waited for."""

    exit_code: int
    seconds: float
    log: Path
    cpu_seconds: float = 0.0

    def output(self) -> str:
        return self.log.read_text(errors="replace")


def run(command: Command, log: Path, while_running: Callable[[float], None], yields: bool = False) -> Finished:
    """Run to the end or to its time limit; `while_running` gets the seconds so far.

    `yields`: other work comes first where processors are short.
    """
    begun = time.monotonic()
    log.parent.mkdir(parents=True, exist_ok=True)
    if interrupted.is_set():
        log.write_text("Interrupted.\n")
        return Finished(EXIT_INTERRUPTED, 0.0, log)
    missing = command.missing()
    if missing:
        log.write_text(missing + "\n")
        return Finished(EXIT_NOT_FOUND, 0.0, log)
    with _own_root_for_pytest() as pytests, log.open("wb") as stream:
        env = {**os.environ, **PLAIN, **SERVERS_OF_TESTS, **pytests, "PATH": _path(), **command.env}
        try:
            child = subprocess.Popen(
                command.argv,
                cwd=REPOSITORY / command.cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except FileNotFoundError:
            stream.write(f"{command.argv[0]} is not there: `make setup` or `make test` fetches it\n".encode())
            return Finished(EXIT_NOT_FOUND, time.monotonic() - begun, log)
        if yields:
            _lower_priority(child.pid)
        try:
            code, cpu_seconds = _wait(child, begun, command.timeout_s, while_running)
        finally:
            _end_group(child)
        if code == EXIT_TIMED_OUT:
            stream.write(f"\nStopped: it took longer than {command.timeout_s:.0f} s.\n".encode())
    return Finished(code, time.monotonic() - begun, log, cpu_seconds)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Around threads that run commands: an interrupt ends their commands, so that they end, too."""
    try:
        yield
    except BaseException:
        interrupted.set()
        raise


@contextlib.contextmanager
def _own_root_for_pytest() -> Iterator[dict[str, str]]:
    """A folder for temporary files of this command alone.

    Each start of pytest closes the folder of all its runs to other users. Another run's PostgreSQL is one of them.
    """
    with tempfile.TemporaryDirectory(prefix="quorate-tests-", ignore_cleanup_errors=True) as folder:
        yield {"PYTEST_DEBUG_TEMPROOT": folder}


def _path() -> str:
    return f"{VENV_BIN}:{os.environ.get('PATH', '')}"


def _lower_priority(pid: int) -> None:
    """Lower the priority of a command that has just begun, and so of all that it starts.

    Linux weighs sessions before processes, so both are lowered.
    """
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, NICENESS)
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text(str(NICENESS))


def _wait(
    child: subprocess.Popen[bytes], begun: float, timeout_s: float, tell: Callable[[float], None]
) -> tuple[int, float]:
    """The exit code and the seconds of processor time."""
    while True:
        ended, status, used = os.wait4(child.pid, os.WNOHANG)
        if ended:
            child.returncode = os.waitstatus_to_exitcode(status)  # it is reaped: Popen must not wait for it
            return child.returncode, used.ru_utime + used.ru_stime
        elapsed_s = time.monotonic() - begun
        if interrupted.is_set():
            return EXIT_INTERRUPTED, 0.0
        if elapsed_s > timeout_s:
            return EXIT_TIMED_OUT, 0.0
        tell(elapsed_s)
        time.sleep(POLL_S)


def _end_group(child: subprocess.Popen[bytes]) -> None:
    """End the command if it still runs: first politely, so that it can stop what it started itself."""
    if child.poll() is not None:
        return
    for sig, grace_s in [(signal.SIGTERM, 15.0), (signal.SIGKILL, 5.0)]:
        os.killpg(child.pid, sig)  # its own session, unreaped: the group is ours
        try:
            child.wait(grace_s)
            return
        except subprocess.TimeoutExpired:
            continue
