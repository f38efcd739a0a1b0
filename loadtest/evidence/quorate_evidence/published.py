"""Published evidence: the newest lines of each subject in `loadtest/results/`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quorate_harness.evidence import subject_of

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True)
class Published:
    """The newest published figures of a subject, or its runs. `sources`: what they speak for; `None` in older lines."""

    subject: str
    file: Path
    sources: frozenset[str | None]
    missed: tuple[str, ...]

    @property
    def day(self) -> str:
        found = _DAY.match(self.file.name)
        return found.group() if found else "undated"


def newest(folder: Path) -> dict[str, Published]:
    """By subject. Files are named by the day, so that the last name is the newest."""
    found: dict[str, Published] = {}
    for file in sorted(folder.glob("*.jsonl")):
        by_subject: dict[str, list[dict[str, Any]]] = {}
        for line in lines(file):
            subject = subject_of(line.get("command") or line.get("repeat", ""))
            if subject:
                by_subject.setdefault(subject.name, []).append(line)
        for name, mine in by_subject.items():
            sources = frozenset(line.get("source") for line in mine)
            missed = tuple(dict.fromkeys(_name(line) for line in mine if _is_missed(line)))
            found[name] = Published(name, file, sources, missed)
    return found


def _is_missed(line: dict[str, Any]) -> bool:
    return line.get("met") is False or line.get("clean") is False


def _name(line: dict[str, Any]) -> str:
    return str(line.get("name") or line.get("fault"))


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in file.read_text().splitlines() if text]
