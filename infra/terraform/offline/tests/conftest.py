"""One mirror of providers for all tests, and copies of our configurations that tests may spoil."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from quorate_offline import mirror

BUILD = mirror.REPOSITORY / "build" / "terraform"
KINDS = ("modules", "envs")
TIMEOUT_S = 120


def configurations() -> list[Path]:
    """Every folder with a configuration, relative to infra/terraform."""
    found = {path.parent for kind in KINDS for path in (mirror.TERRAFORM / kind).glob("*/*.tf")}
    return sorted(folder.relative_to(mirror.TERRAFORM) for folder in found)


@dataclass
class Configuration:
    """A copy of one folder, beside copies of all others, in which Terraform may write."""

    folder: Path
    env: dict[str, str]

    def run(self, *arguments: str, expect: int = 0) -> str:
        done = subprocess.run(
            ["terraform", *arguments, "-no-color"],
            cwd=self.folder,
            env={**os.environ, **self.env},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        said = done.stdout + done.stderr
        assert done.returncode == expect, f"terraform {' '.join(arguments)} in {self.folder}: {said}"
        return " ".join(said.replace("│", " ").split())

    def init(self) -> Configuration:
        self.run("init", "-backend=false", "-input=false")
        return self

    def outputs(self) -> dict[str, Any]:
        done = subprocess.run(
            ["terraform", "output", "-json"], cwd=self.folder, env={**os.environ, **self.env},
            capture_output=True, timeout=TIMEOUT_S, check=True,
        )  # fmt: skip
        return {name: output["value"] for name, output in json.loads(done.stdout).items()}

    def edit(self, file: str, old: str, new: str) -> None:
        """Replace `old`, which must occur once, with any number of spaces as `terraform fmt` aligns."""
        pattern = re.compile(re.escape(old).replace(r"\ ", " +"))
        text, found = pattern.subn(lambda _: new, (self.folder / file).read_text())
        assert found == 1, f"{old!r} stands {found} times in {file}"
        (self.folder / file).write_text(text)


@pytest.fixture(scope="session")
def installation() -> dict[str, str]:
    """The environment in which Terraform finds every provider and has no network."""
    if shutil.which("terraform") is None:
        pytest.fail("these tests run Terraform (1.11 or newer), and it is not in PATH")
    files = [path for kind in KINDS for path in (mirror.TERRAFORM / kind).glob("**/*.tf")]
    return mirror.make(BUILD / "mirror", files)


@pytest.fixture
def copy(installation: dict[str, str], tmp_path: Path) -> Callable[[str], Configuration]:
    """`copy("modules/aws")`: that folder, where a test may change it."""
    ignored = shutil.ignore_patterns(".terraform*", "*.tfstate*")
    for kind in KINDS:
        if (mirror.TERRAFORM / kind).is_dir():
            shutil.copytree(mirror.TERRAFORM / kind, tmp_path / kind, ignore=ignored)
    return lambda folder: Configuration(tmp_path / folder, installation)
