"""Input of the tidy tests: the files that git tracks or would track."""

import subprocess
from pathlib import Path

import pytest

from quorate_local.options import REPOSITORY


@pytest.fixture(scope="session")
def repository() -> Path:
    return REPOSITORY


@pytest.fixture(scope="session")
def files() -> list[Path]:
    """Paths relative to the repository."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, check=True, text=True).stdout
    found = [Path(name) for name in listed.split("\0") if name and (REPOSITORY / name).is_file()]
    assert found, "git lists no files"
    return found


@pytest.fixture(scope="session")
def texts(files: list[Path]) -> dict[Path, str]:
    """The text of every file that is text."""
    result = {}
    for path in files:
        data = (REPOSITORY / path).read_bytes()
        if b"\0" not in data:
            result[path] = data.decode(errors="replace")
    return result
