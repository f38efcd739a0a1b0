"""`quorate-alloc` as a process: an instance in, an answer out."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from quorate_local.options import REPOSITORY

BINARY = REPOSITORY / "build" / "bin" / "quorate-alloc"
TIMEOUT_S = 300


class Refused(Exception):
    """What it said about the instance, or the profile."""


def run(arguments: list[str], profile: Path, instance: dict[str, Any]) -> dict[str, Any]:
    done = subprocess.run(
        [BINARY, *arguments, "--profile", profile, "-"],
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


def problem(profile: Path) -> str | None:
    """Why the profile cannot be used, if it cannot."""
    try:
        run(["place", "--online"], profile, {"servers": [{"id": "s", "capacity": [1, 1, 1]}]})
    except Refused as refused:
        return str(refused)
    return None
