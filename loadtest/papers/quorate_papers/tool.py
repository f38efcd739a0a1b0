"""`quorate-planner` as a process: an instance in, an answer out."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from quorate_local.options import BINARIES

BINARY = BINARIES / "quorate-planner"
TIMEOUT_S = 300


class Refused(Exception):
    """The tool's error about the instance, or the profile."""


def run(arguments: list[str], profile: Path | None, question: dict[str, Any]) -> dict[str, Any]:
    """`question`: an instance, or what `demand` takes, which may hold a profile itself."""
    by: list[str | Path] = [] if profile is None else ["--profile", profile]
    done = subprocess.run(
        [BINARY, *arguments, *by, "-"],
        input=json.dumps(question),
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
    """The reason for which the profile cannot be used, if there is one."""
    try:
        run(["place", "--online"], profile, {"servers": [{"id": "s", "capacity": [1, 1, 1]}]})
    except Refused as refused:
        return str(refused)
    return None
