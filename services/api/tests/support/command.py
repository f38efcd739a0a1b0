"""The command `quorate-api` as a process."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

COMMAND = str(Path(sys.executable).parent / "quorate-api")


class Process:
    """A started command with its output collected."""

    def __init__(self, environment: dict[str, str], *arguments: str) -> None:
        self.out: list[str] = []
        self.err: list[str] = []
        self._process = subprocess.Popen(
            [COMMAND, *arguments], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._threads = [
            threading.Thread(target=lambda pipe=pipe, lines=lines: lines.extend(pipe), daemon=True)
            for pipe, lines in ((self._process.stdout, _Live(self.out)), (self._process.stderr, _Live(self.err)))
        ]
        for thread in self._threads:
            thread.start()

    def line(self, beginning: str, timeout_s: float = 60) -> str:
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            for line in list(self.out):
                if line.startswith(beginning):
                    return line.strip()
            if self._process.poll() is not None:
                break
            time.sleep(0.02)
        raise AssertionError(f"no line {beginning!r}: {self.out} {self.err}")

    def wait(self, timeout_s: float = 60) -> int:
        code = self._process.wait(timeout_s)
        for thread in self._threads:
            thread.join(5)
        return code

    def stop(self) -> int:
        self._process.send_signal(signal.SIGTERM)
        return self.wait()

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(10)
        for thread in self._threads:
            thread.join(5)
        for pipe in (self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()


class _Live(list):  # type: ignore[type-arg]
    def __init__(self, target: list[str]) -> None:
        self._target = target

    def extend(self, lines: Any) -> None:
        for line in lines:
            self._target.append(line)


def address_of(api: Process) -> str:
    return "http://" + api.line("listening role=api").split("address=")[1]
