"""Cgroups that a measurement made."""

from __future__ import annotations

import time
from pathlib import Path

_REMOVE_TIMEOUT_S = 5.0


def remove(group: Path) -> None:
    """After the run: its processes have ended, or end now."""
    deadline = time.monotonic() + _REMOVE_TIMEOUT_S
    while group.exists():
        try:
            group.rmdir()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
