"""A program of the demo in its own process: configuration in by stdin, JSON lines out.

Lines `{"progress": {…}}` come while it works and one `{"result": {…}}` at its end. Its stderr goes to a log file. The
configuration holds an API key: hence stdin, not arguments.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

DEMO = Path(__file__).resolve().parents[1]
STOP_GRACE_S = 5.0
LOG_TAIL_LINES = 12

REPLAY = {
    "python": [sys.executable, "-m", "quorate_demo.replay"],
    "typescript": ["node", str(DEMO / "js" / "replay.mjs")],
}
READBACK = {
    "python": [sys.executable, "-m", "quorate_demo.readback"],
    "typescript": ["node", str(DEMO / "js" / "readback.mjs")],
}


class ProgramFailed(Exception):
    """The program ended without a result; the message shows the end of its log."""


class Program:
    """Starts at once. `progress` is the newest that it reported."""

    def __init__(self, name: str, argv: list[str], config: dict[str, Any], log: Path) -> None:
        self.name = name
        self.progress: dict[str, Any] = {}
        self._log = log
        self._result: dict[str, Any] | None = None
        with log.open("wb") as stream:
            self._child = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stream, text=True, start_new_session=True
            )
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(json.dumps(config))
            self._child.stdin.close()
        except BrokenPipeError:
            pass  # it ended at once; `result` says so with its log
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def running(self) -> bool:
        return self._child.poll() is None

    def result(self, timeout_s: float) -> dict[str, Any]:
        """Wait for its result."""
        deadline = time.monotonic() + timeout_s
        self._reader.join(timeout_s)
        try:
            code = self._child.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.stop()
            raise ProgramFailed(f"{self.name} did not end within {timeout_s:.0f} s\n{self._tail()}") from None
        if self._result is None or code != 0:
            raise ProgramFailed(f"{self.name} ended with code {code} and without a result\n{self._tail()}")
        return self._result

    def stop(self) -> None:
        if self._child.poll() is not None:
            return
        self._child.terminate()
        try:
            self._child.wait(STOP_GRACE_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()

    def _read(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            try:
                message = json.loads(line)
            except json.JSONDecodeError:
                continue
            if "progress" in message:
                self.progress = message["progress"]
            if "result" in message:
                self._result = message["result"]

    def _tail(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:]
        return "\n".join(f"    {line}" for line in lines) or "    (it wrote nothing to its log)"
