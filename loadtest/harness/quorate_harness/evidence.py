"""Evidence: which sources a published figure speaks for, and a digest of them.

A figure outlives the code that it was measured on. The digest in its line tells whether that code is still here.
`evidence.toml` lists the subjects.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quorate_local.options import REPOSITORY

SUBJECTS = Path(__file__).with_name("evidence.toml")
# The digest at the begin of a run: sources may change before its figures are kept. Programs in Rust know no other.
AT_START = "QUORATE_SOURCE"
_DIGEST_DIGITS = 16
_COMMENTS = {".rs": "//", ".go": "//", ".java": "//", ".py": "#", ".toml": "#"}
_TESTS = ("/tests/", "_test.go")


@dataclass(frozen=True)
class Subject:
    """`run`: the command that measures it anew, where no quiet machine is needed for that. `parts`: commands that
    measure the same together, so that an interrupted measurement goes on."""

    name: str
    command: str
    packages: tuple[str, ...]
    folders: tuple[str, ...]
    run: str | None
    publishes: bool
    parts: tuple[str, ...] = ()

    def source(self, root: Path = REPOSITORY) -> str:
        """A digest of the sources as they are in the working tree, without tests, comments and blank lines."""
        folders = [*_package_folders(self.packages, root), *self.folders]
        digest = hashlib.sha256()
        for name in _files(root, folders):
            digest.update(f"{name}\0{_code(root / name)}\0".encode())
        return digest.hexdigest()[:_DIGEST_DIGITS]


@functools.cache
def subjects() -> dict[str, Subject]:
    tables = tomllib.loads(SUBJECTS.read_text())
    return {name: _subject(name, table) for name, table in tables.items()}


def subject_of(command: str) -> Subject | None:
    """The subject that a figure's command belongs to: the one that names most of it."""
    named = [one for one in subjects().values() if _begins(command, one.command)]
    return max(named, key=lambda one: len(one.command), default=None)


def source_of(command: str) -> str | None:
    """The digest for a figure that this command measured. None: it belongs to no subject."""
    subject = subject_of(command)
    if subject is None:
        return None
    return os.environ.get(AT_START) or subject.source()


def _subject(name: str, table: dict[str, Any]) -> Subject:
    known = {"command", "packages", "folders", "run", "publishes", "parts"}
    if unknown := set(table) - known:
        raise ValueError(f"{SUBJECTS.name}: {name} has unknown keys {sorted(unknown)}")
    return Subject(
        name,
        table["command"],
        tuple(table.get("packages", ())),
        tuple(table.get("folders", ())),
        table.get("run"),
        table.get("publishes", False),
        tuple(table.get("parts", ())),
    )


def _begins(command: str, with_words: str) -> bool:
    return command.startswith(with_words) and command[len(with_words) :][:1] in ("", " ", "=")


def _package_folders(names: tuple[str, ...], root: Path) -> list[str]:
    """Source folders of the packages and of all packages of the repository that they need, tests' needs aside."""
    if not names:
        return []
    command = ["cargo", "metadata", "--no-deps", "--offline", "--format-version", "1"]
    done = subprocess.run(command, cwd=root / "services", capture_output=True, text=True, check=True, timeout=60)
    packages = {package["name"]: package for package in json.loads(done.stdout)["packages"]}
    reached: set[str] = set()
    frontier = set(names)
    while frontier:
        reached |= frontier
        needed = [one for name in frontier for one in packages[name]["dependencies"] if one["kind"] != "dev"]
        frontier = {one["name"] for one in needed if one.get("path")} - reached
    folders = (Path(packages[name]["manifest_path"]).parent / "src" for name in reached)
    return sorted(str(folder.relative_to(root.resolve())) for folder in folders)


def _files(root: Path, folders: list[str]) -> list[str]:
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", *folders]
    done = subprocess.run(listing, cwd=root, capture_output=True, text=True, check=True)
    names = sorted({name for name in done.stdout.split("\0") if name and (root / name).is_file()})
    return [name for name in names if not _is_test(name)]


def _is_test(name: str) -> bool:
    stem = Path(name).stem
    return any(part in name for part in _TESTS) or stem == "tests" or stem.endswith("_tests") or name.endswith(".md")


def _code(path: Path) -> str:
    comment = _COMMENTS.get(path.suffix)
    lines = (line.strip() for line in path.read_text(errors="replace").splitlines())
    return "\n".join(line for line in lines if line and not (comment and line.startswith(comment)))
