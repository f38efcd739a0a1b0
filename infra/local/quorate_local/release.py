"""Releases: where the programs and packages of one are. The one before the present is built from its commit."""

from __future__ import annotations

import os
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

PIN = Path("infra/release/predecessor.toml")
BUILD_TIMEOUT_S = 1_800.0
PYTHON_PACKAGES = ("services/api/src", "sdk/python/src")


class NoPredecessor(Exception):
    """The release before the present one cannot be built; the message says what is missing."""


@dataclass(frozen=True)
class Release:
    """`sources`: its checkout, whose Python packages are used; None: those that are installed."""

    bin_dir: Path
    sources: Path | None = None

    def environment(self) -> dict[str, str]:
        """Variables of its Python processes."""
        if self.sources is None:
            return {}
        return {"PYTHONPATH": os.pathsep.join(str(self.sources / package) for package in PYTHON_PACKAGES)}


def predecessor(repository: Path, folder: Path) -> Release:
    """The release before the present one, built in `folder` unless it is there already. It takes minutes."""
    commit = tomllib.loads((repository / PIN).read_text())["commit"]
    sources = folder / commit[:12]
    release = Release(sources / "build" / "bin", sources)
    if not (sources / "built").exists():
        _check_out(repository, commit, sources)
        _build(repository, sources)
        (sources / "built").touch()
    return release


def _check_out(repository: Path, commit: str, sources: Path) -> None:
    there = subprocess.run(["git", "-C", str(repository), "cat-file", "-e", f"{commit}^{{commit}}"], check=False)
    if there.returncode != 0:
        raise NoPredecessor(
            f"the history here lacks commit {commit[:12]} of {PIN}, the release before this one: nothing was tried. "
            "Fetch it (git fetch --unshallow, or git fetch --all), and run again"
        )
    sources.mkdir(parents=True, exist_ok=True)
    archive = subprocess.run(["git", "-C", str(repository), "archive", commit], check=True, stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", "-C", str(sources)], input=archive.stdout, check=True)


def _build(repository: Path, sources: Path) -> None:
    """The dependencies of both are the same, so they share cargo's folder, and the packages of node."""
    target = os.environ.get("CARGO_TARGET_DIR", str(repository / "services" / "target"))
    log = sources / "build.log"
    steps = [
        (["bash", "infra/setup/rust.sh", "release"], sources),
        (["npm", "run", "--silent", "build"], sources / "sdk" / "js"),
    ]
    packages = sources / "sdk" / "js" / "node_modules"
    if not packages.exists():
        packages.symlink_to(repository / "sdk" / "js" / "node_modules")
    with log.open("wb") as out:
        for command, where in steps:
            done = subprocess.run(
                command,
                cwd=where,
                env={**os.environ, "CARGO_TARGET_DIR": target},
                stdout=out,
                stderr=out,
                timeout=BUILD_TIMEOUT_S,
                check=False,
            )
            if done.returncode != 0:
                raise NoPredecessor(f"the release before this one does not build: {log} says why")
