"""The release before this one: its absence is said, with the next step."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from quorate_local.release import PIN, NoPredecessor, Release, predecessor


def test_a_history_without_the_commit_is_said_loudly(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    pin = tmp_path / PIN
    pin.parent.mkdir(parents=True)
    pin.write_text(f'version = "0.0.1"\ncommit = "{"ab" * 20}"\n')
    with pytest.raises(NoPredecessor, match="git fetch --unshallow"):
        predecessor(tmp_path, tmp_path / "built")
    assert not (tmp_path / "built").exists(), "nothing was begun"


def test_python_processes_of_a_release_use_its_own_packages(tmp_path: Path) -> None:
    assert Release(tmp_path).environment() == {}
    path = Release(tmp_path / "bin", tmp_path).environment()["PYTHONPATH"]
    assert path.split(":") == [str(tmp_path / "services/api/src"), str(tmp_path / "sdk/python/src")]
