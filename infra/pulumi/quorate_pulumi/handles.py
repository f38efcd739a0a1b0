"""Writes the stack output `handles` to files for the load driver: `python -m quorate_pulumi.handles FOLDER`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from quorate.errors import HandleError
from quorate.handle import Handle


def write(folder: Path, handles: Mapping[str, str]) -> list[Path]:
    """Write NAME.json for each, readable by the owner only. Raises ValueError before anything is written."""
    for name, text in handles.items():
        if not name or Path(name).name != name:
            raise ValueError(f"{name!r} is no file's name")
        try:
            Handle.parse(text)
        except HandleError as problem:
            raise ValueError(f"{name}: {problem}") from None
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    paths = []
    for name, text in handles.items():
        path = folder / f"{name}.json"
        path.unlink(missing_ok=True)  # an existing file that others may read would keep its mode
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
            stream.write(text)
        paths.append(path)
    return paths


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: pulumi stack output handles --show-secrets --json | python -m quorate_pulumi.handles FOLDER")
        return 2
    try:
        handles = json.load(sys.stdin)
        if not isinstance(handles, dict):
            raise ValueError("it is not an object")
        for path in write(Path(sys.argv[1]), handles):
            print(path)
    except ValueError as problem:
        print(f"stdin is not a stack's output `handles`: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
