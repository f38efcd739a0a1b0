"""`make evidence`: measures what is older than its sources, one subject after the other, and publishes it.

It can be interrupted: what was published, or is a measured part, is not measured again.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from quorate_evidence.published import lines
from quorate_evidence.status import RESULTS, Status
from quorate_harness.evidence import AT_START, Subject, subject_of
from quorate_harness.figures import FOLDER
from quorate_local.display import Display
from quorate_local.options import REPOSITORY

HOURS_MAX = 6.0
_END_GRACE_S = 60.0


def run(stale: list[Status], display: Display) -> int:
    """0 when all of it was measured, clean, and is published."""
    failed = []
    for status in stale:
        subject = status.subject
        if subject.run is None:
            display.line(f"left out: {subject.name}, which needs a quiet machine ({subject.command})")
        elif not _measure(subject, subject.run, display):
            failed.append(subject.name)
    display.line(f"NOT CLEAN: {', '.join(failed)}" if failed else "All of it is published.")
    return int(bool(failed))


def _measure(subject: Subject, command: str, display: Display) -> bool:
    display.line(f"\n{subject.name}: {command}")
    since, source = _counts(), subject.source()
    for part in subject.parts or (command,):
        if part in subject.parts and _part_lines(part, source):
            display.line(f"  was measured before: {part}")
        elif not _run_one(subject, part, source, display):
            return False
    if subject.publishes:
        return True
    lines = _sums(subject.parts, command, source) if subject.parts else _new_lines(subject, since)
    written = publish(subject, lines)
    display.line(f"  wrote {written.relative_to(REPOSITORY)}")
    return True


def _run_one(subject: Subject, command: str, source: str, display: Display) -> bool:
    begun = time.monotonic()
    code = _call(command, source)
    display.line(f"  {command}: took {(time.monotonic() - begun) / 60:.0f} min, exit code {code}")
    if code == 0 and subject.source() != source:
        display.line("  the sources have changed meanwhile: nothing is published")
        return False
    return code == 0


def _sums(parts: tuple[str, ...], command: str, source: str) -> list[str]:
    """A line for each figure of the parts, as if one command had measured all of them."""
    sums: dict[str, dict[str, Any]] = {}
    for part in parts:
        for line in _part_lines(part, source):
            known = sums.setdefault(line["name"], {**line, "command": command, "value": 0})
            known["value"] += line["value"]
            known["met"] = None if line["goal"] is None else known["value"] >= line["goal"]
    return [json.dumps(line, ensure_ascii=False) for line in sums.values()]


def _part_lines(part: str, source: str) -> list[dict[str, Any]]:
    """The newest figure of each name that this part left for these sources."""
    kept = (line for file in sorted(FOLDER.glob("*.jsonl")) for line in lines(file))
    mine = (line for line in kept if line.get("command") == part and line.get("source") == source)
    return list({line["name"]: line for line in mine}.values())


def publish(subject: Subject, figures: list[str], folder: Path = RESULTS) -> Path:
    """Write the figures, in the place of those of the same day."""
    if not figures:
        raise ValueError(f"{subject.name} has left no figures in build/figures")
    file = folder / f"{datetime.now(UTC):%Y-%m-%d}-{subject.name}.jsonl"
    file.write_text("".join(f"{line}\n" for line in figures))
    return file


def _call(command: str, source: str) -> int:
    """In a session of its own, which ends with this process: servers and simulations must not outlive it."""
    env = {**os.environ, AT_START: source}
    with subprocess.Popen(shlex.split(command), cwd=REPOSITORY, env=env, start_new_session=True) as child:
        try:
            return child.wait(HOURS_MAX * 3600)
        except BaseException:
            os.killpg(child.pid, signal.SIGTERM)
            child.wait(_END_GRACE_S)
            raise


def _counts() -> dict[Path, int]:
    return {file: len(lines(file)) for file in FOLDER.glob("*.jsonl")}


def _new_lines(subject: Subject, since: dict[Path, int]) -> list[str]:
    """Figures of this subject that were kept after `since`."""
    found = []
    for file in sorted(FOLDER.glob("*.jsonl")):
        for line in lines(file)[since.get(file, 0) :]:
            about = subject_of(line["command"])
            if about and about.name == subject.name:
                found.append(json.dumps(line, ensure_ascii=False))
    return found
