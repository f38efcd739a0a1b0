"""The state folder: its files, their modes, and wiping it."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_MARKER = "quorate-state"
_MARKER_TEXT = "The state of a local Quorate stack. `make down WIPE=1` removes this folder.\n"


class NotAStateFolder(Exception):
    """The folder holds other files, so it is neither used nor removed."""


@dataclass(frozen=True)
class Layout:
    root: Path

    @property
    def postgres(self) -> Path:
        return self.root / "postgres"

    @property
    def redis(self) -> Path:
        return self.root / "redis"

    @property
    def coordinator(self) -> Path:
        """Of the first coordinator."""
        return self.coordinator_named("coordinator")

    def coordinator_named(self, name: str) -> Path:
        return self.root / name

    @property
    def observe(self) -> Path:
        """Prometheus' configuration and data, and the bridge's address."""
        return self.root / "observe"

    @property
    def secrets(self) -> Path:
        return self.root / "secrets"

    @property
    def mail(self) -> Path:
        """Mail that the service has sent, a file for each."""
        return self.root / "mail"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def stack_file(self) -> Path:
        return self.root / "stack.json"

    def server(self, name: str) -> Path:
        return self.root / "servers" / name

    def log(self, process: str) -> Path:
        return self.logs / f"{process}.log"

    def record(self, process: str) -> Path:
        return self.run / f"{process}.json"

    def records(self) -> list[Path]:
        return sorted(self.run.glob("*.json"))

    def create(self) -> None:
        """Make the folder, or check that an existing one is a state folder."""
        self._check_ours()
        for folder in (self.root, self.root / "servers", self.coordinator, self.logs, self.run):
            folder.mkdir(parents=True, exist_ok=True)
        (self.root / _MARKER).write_text(_MARKER_TEXT)
        self.secrets.mkdir(exist_ok=True)
        self.secrets.chmod(0o700)

    def wipe(self) -> None:
        """Remove the folder, if `create` made it."""
        if self.root.exists():
            self._check_ours()
            shutil.rmtree(self.root)

    def _check_ours(self) -> None:
        if not self.root.exists() or (self.root / _MARKER).exists():
            return
        if not self.root.is_dir() or any(self.root.iterdir()):
            raise NotAStateFolder(f"{self.root} exists and is not the state of a Quorate stack; choose another STATE")


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in `path`; None if the file is absent or incomplete."""
    try:
        value = json.loads(path.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    return value if isinstance(value, dict) else None


def write_json(path: Path, value: dict[str, Any], mode: int = 0o644) -> None:
    """Write whole or not at all: readers never see half a file."""
    write_text(path, json.dumps(value, indent=1) + "\n", mode)


def write_text(path: Path, text: str, mode: int = 0o644) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(descriptor, "w") as stream:
        os.fchmod(stream.fileno(), mode)
        stream.write(text)
    os.replace(temporary, path)
