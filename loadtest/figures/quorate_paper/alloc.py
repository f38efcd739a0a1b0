"""Runs `quorate-alloc`."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from quorate_local.options import REPOSITORY
from quorate_paper.instances import Instance

BINARY = REPOSITORY / "build" / "bin" / "quorate-alloc"
TIMEOUT_S = 300


class Refused(Exception):
    """What it said about the instance."""


def place(instance: Instance, how: str, algorithm: str = "shape") -> dict[str, Any]:
    """`how`: online or offline; `algorithm`: shape (the coordinator's), or filo (Algorithm 1 as printed)."""
    return _run(["place", f"--{how}", "--algorithm", algorithm], instance)


def conserve(instance: Instance, algorithm: str, repeat: int = 1, *more: str) -> dict[str, Any]:
    """Shares out all that is idle."""
    return _run(["conserve", "--algorithm", algorithm, "--policy", "idle", "--repeat", str(repeat), *more], instance)


def _run(arguments: list[str], instance: Instance) -> dict[str, Any]:
    done = subprocess.run(
        [BINARY, *arguments, "-"],
        input=json.dumps(instance),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        raise Refused(done.stderr.strip())
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
