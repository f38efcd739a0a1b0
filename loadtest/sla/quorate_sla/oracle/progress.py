"""Months that an interrupted run has judged: the next one goes on behind them."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

import quorate_api
import quorate_sla


@dataclass(frozen=True)
class Chunk:
    """Months of consecutive seeds. `differences`: what was found, by seed."""

    first: int
    count: int
    differences: dict[int, list[str]]
    kinds: dict[str, int]


class Progress:
    """A file with a line for each chunk. Chunks that other code has judged do not count."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._code = _digest()

    def known(self) -> dict[tuple[int, int], Chunk]:
        """Chunks by their first seed and their number of months."""
        try:
            lines = self._path.read_text().splitlines()
        except FileNotFoundError:
            return {}
        found = {}
        for line in lines:
            try:
                said = json.loads(line)
            except ValueError:
                continue  # cut by a crash
            if said.pop("code") == self._code:
                said["differences"] = {int(seed): words for seed, words in said["differences"].items()}
                chunk = Chunk(**said)
                found[chunk.first, chunk.count] = chunk
        return found

    def keep(self, chunk: Chunk) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a") as file:
            file.write(json.dumps({"code": self._code, **asdict(chunk)}) + "\n")


def summed(chunks: list[Chunk]) -> tuple[dict[int, list[str]], Counter[str]]:
    """Differences by seed, and what the months had in them."""
    differences: dict[int, list[str]] = {}
    kinds: Counter[str] = Counter()
    for chunk in chunks:
        differences |= chunk.differences
        kinds.update(chunk.kinds)
    return differences, kinds


def _digest() -> str:
    """Of all code that takes part: the oracle's, and the API's."""
    found = hashlib.sha256()
    for package in (quorate_api, quorate_sla):
        folder = Path(str(package.__file__)).parent
        for path in sorted(folder.rglob("*.py")):
            found.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return found.hexdigest()
