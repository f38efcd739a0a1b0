"""The files of a checkout: those that git tracks or would track."""

from __future__ import annotations

import subprocess
from pathlib import Path


def files(root: Path, chosen: list[str]) -> list[str]:
    """Paths relative to `root`, of all files or of those below the chosen paths."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", *chosen]
    return sorted({name for name in git(listing, root).split("\0") if name and (root / name).is_file()})


def git(command: list[str], root: Path, given: str = "") -> str:
    return subprocess.run(command, cwd=root, input=given, capture_output=True, check=True, text=True).stdout
