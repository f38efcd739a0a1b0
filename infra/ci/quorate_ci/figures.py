"""Figures that are kept, one line of JSON each: the form of `loadtest/driver/src/figures.rs`, in `build/figures/`."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from pathlib import Path

from quorate_local.options import REPOSITORY

FOLDER = REPOSITORY / "build" / "figures"


def keep(file: str, name: str, value: float, unit: str, command: str) -> dict[str, object]:
    """Append a figure without a goal to `build/figures/<file>`, and answer its line."""
    line: dict[str, object] = {"name": name, "value": value, "unit": unit, "goal": None, "met": None}
    line |= {"command": command, "commit": _commit(), "machine": _machine()}
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / file).open("a") as stream:
        stream.write(json.dumps(line, ensure_ascii=False) + "\n")
    return line


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def _machine() -> str:
    model = _field("/proc/cpuinfo", "model name") or "unknown processor"
    memory_gib = int((_field("/proc/meminfo", "MemTotal") or "0 kB").split()[0]) / (1 << 20)
    return f"{os.cpu_count()} × {model}, {memory_gib:.0f} GiB, Linux {platform.release()}"


def _field(path: str, name: str) -> str | None:
    for line in Path(path).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None
