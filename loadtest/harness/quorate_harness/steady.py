"""A steady load on groups by the Rust driver, in its own process, observed in windows (`quorate-load steady`)."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quorate_harness.fleet import Fleet, MeasurementFailed
from quorate_local.components import binary
from quorate_local.options import REPOSITORY

ANSWER_TIMEOUT_S = 30.0
END_TIMEOUT_S = 60.0
VERIFY_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Window:
    """The view of the driver's clients between two marks. Times are microseconds of the Unix clock.

    `gap`: the longest time between two acknowledgements, of those that ended in the window. `links`: when a
    head was attached, with its epoch, or a connection lost (None). `refused`, `unknown`: entries by code, since the
    start.
    """

    name: str
    began_us: int
    ended_us: int
    acked: int
    acked_per_s: float
    p50_us: int
    p99_us: int
    max_us: int
    gap: tuple[int, int] | None
    silent_us: int | None
    links: list[tuple[int, int | None]]
    refused: dict[str, int]
    unknown: dict[str, int]

    @classmethod
    def of(cls, report: dict[str, Any]) -> Window:
        gap = report["gap"]
        values = {key: report[key] for key in cls.__dataclass_fields__ if key not in ("gap", "links")}
        links = [(link["at_us"], link["epoch"]) for link in report["links"]]
        return cls(**values, gap=(gap["from_us"], gap["to_us"]) if gap else None, links=links)


class Steady:
    """Starts at once and is attached when constructed. `with` ends it; `end` ends it and gives what became of all."""

    def __init__(self, fleet: Fleet, name: str, group_ids: list[str], *flags: str) -> None:
        self.name = name
        self.result_file = fleet.folder / f"load-{name}.json"
        self.result_file.unlink(missing_ok=True)
        self._fleet = fleet
        self._groups = group_ids
        self._log = fleet.folder / f"load-{name}.log"
        command = [binary(fleet.stack.options, "quorate-load"), "steady", "--json", str(self.result_file), *flags]
        for group_id in group_ids:
            command += ["--handle", str(fleet.handle_file(group_id))]
        with self._log.open("wb") as stream:
            self._child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stream, text=True, cwd=REPOSITORY
            )
        self._reports: queue.Queue[dict[str, Any] | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        try:
            self._next("ready")
        except MeasurementFailed:
            self.stop()
            raise

    def mark(self, name: str) -> Window:
        """Ends the present window and begins one of this name; what was seen in the one that ended."""
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(name + "\n")
            self._child.stdin.flush()
        except BrokenPipeError:
            pass  # it ended; the next line says so with its log
        return Window.of(self._next("window"))

    def end(self) -> dict[str, Any]:
        """Stops appending, waits for what is outstanding: refused, unknown, reconnects, runs."""
        assert self._child.stdin is not None
        self._child.stdin.close()
        try:
            code = self._child.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.stop()
            raise MeasurementFailed(f"the load {self.name} did not end within {END_TIMEOUT_S:.0f} s") from None
        if code != 0:
            raise MeasurementFailed(f"the load {self.name} ended with code {code}\n{self._tail()}")
        return dict(json.loads(self.result_file.read_text()))

    def verify(self) -> str:
        """Read the groups back, after `end`.

        Everything acknowledged must be there once and in order, or it is `MeasurementFailed`.
        """
        command = [binary(self._fleet.stack.options, "quorate-load"), "verify", "--result", str(self.result_file)]
        for group_id in self._groups:
            command += ["--handle", str(self._fleet.handle_file(group_id))]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=VERIFY_TIMEOUT_S, check=False, cwd=REPOSITORY
        )
        if done.returncode != 0:
            raise MeasurementFailed(f"the log is not what was acknowledged: {done.stdout}{done.stderr}")
        return done.stdout.strip()

    def stop(self) -> None:
        """At once."""
        if self._child.poll() is None:
            self._child.kill()
            self._child.wait()

    def __enter__(self) -> Steady:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _next(self, kind: str) -> dict[str, Any]:
        try:
            report = self._reports.get(timeout=ANSWER_TIMEOUT_S)
        except queue.Empty:
            raise MeasurementFailed(f"the load {self.name} says nothing\n{self._tail()}") from None
        if report is None:
            raise MeasurementFailed(f"the load {self.name} ended early\n{self._tail()}")
        value = report[kind]
        return value if isinstance(value, dict) else {}

    def _read(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            self._reports.put(json.loads(line))
        self._reports.put(None)

    def _tail(self) -> str:
        return self._log.read_text(errors="replace")[-2000:]


def append_once(fleet: Fleet, handle: Path, folder: Path, *flags: str, prefix: Sequence[str] = ()) -> dict[str, Any]:
    """One measurement by `quorate-load append`; its JSON result. `prefix`: of the command, such as taskset's."""
    result = folder / "append.json"
    command = [binary(fleet.stack.options, "quorate-load"), "append", "--handle", str(handle), "--json", str(result)]
    words = [*prefix, *command, *flags]
    done = subprocess.run(words, capture_output=True, text=True, timeout=VERIFY_TIMEOUT_S, check=False, cwd=REPOSITORY)
    if done.returncode != 0:
        raise MeasurementFailed(f"the load driver ended with code {done.returncode}\n{done.stderr[-2000:]}")
    return dict(json.loads(result.read_text()))
