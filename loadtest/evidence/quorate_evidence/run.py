"""`make evidence`: measures what is older than its sources, one subject after the other, and publishes it.

It can be interrupted: what was published, or is a measured part, is not measured again. Measured parts lie beside
the results, so that another machine can go on with them.
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
_RESUME = " RESUME=1"

# A line of `build/figures`.
Figure = dict[str, Any]


def run(stale: list[Status], display: Display, anew: bool = False) -> int:
    """0 when all of it was measured, clean, and is published. `anew`: also what is left of an interrupted run."""
    failed = []
    for status in stale:
        subject = status.subject
        if anew:
            _forget_parts(subject)
        if subject.run is None:
            display.line(f"left out: {subject.name}, which needs a quiet machine ({subject.command})")
        elif not _measure(subject, subject.run.replace(_RESUME, "") if anew else subject.run, display):
            failed.append(subject.name)
    display.line(f"NOT CLEAN: {', '.join(failed)}" if failed else "All of it is published.")
    return int(bool(failed))


def _measure(subject: Subject, command: str, display: Display) -> bool:
    display.line(f"\n{subject.name}: {command}")
    source = subject.source()
    found: list[Figure] = []
    for part in subject.parts or (command,):
        before = _measured(subject, part, source)
        if before:
            display.line(f"  was measured before: {part}")
        figures = before or _run_one(subject, part, source, display)
        if figures is None:
            return False
        found += figures
    if not subject.publishes:
        figures = _sums(found, command) if subject.parts else found
        written = publish(subject, [json.dumps(figure, ensure_ascii=False) for figure in figures])
        display.line(f"  wrote {written.relative_to(REPOSITORY)}")
    return True


def _run_one(subject: Subject, command: str, source: str, display: Display) -> list[Figure] | None:
    """The figures that it left; None if it was not clean."""
    begun, since = time.monotonic(), _counts()
    code = _call(command, source)
    display.line(f"  {command}: took {(time.monotonic() - begun) / 60:.0f} min, exit code {code}")
    if code != 0:
        return None
    if subject.source() != source:
        display.line("  the sources have changed meanwhile: nothing is published")
        return None
    figures = [] if subject.publishes else _new_figures(subject, since)
    if subject.parts:
        file = _part_file(subject, command)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"part": command, "source": source, "figures": figures}) + "\n")
    return figures


def _measured(subject: Subject, part: str, source: str) -> list[Figure]:
    """The figures of a part that was measured, clean, with these sources."""
    if part not in subject.parts:
        return []
    file = _part_file(subject, part)
    kept = lines(file) if file.exists() else []
    return next((one["figures"] for one in kept if (one["part"], one["source"]) == (part, source)), [])


def _part_file(subject: Subject, part: str) -> Path:
    """A file of its own: figures name their commit, and a changed file would make it a dirty one."""
    return RESULTS / "parts" / f"{subject.name}-{subject.parts.index(part) + 1:02}.jsonl"


def _forget_parts(subject: Subject) -> None:
    for part in subject.parts:
        _part_file(subject, part).unlink(missing_ok=True)


def _sums(found: list[Figure], command: str) -> list[Figure]:
    """One figure of each name, as if one command had measured all parts. More is better."""
    sums: dict[str, Figure] = {}
    for figure in found:
        known = sums.setdefault(figure["name"], {**figure, "command": command, "value": 0})
        known["value"] += figure["value"]
        known["met"] = None if figure["goal"] is None else known["value"] >= figure["goal"]
    return list(sums.values())


def publish(subject: Subject, figures: list[str]) -> Path:
    """Write the figures, in the place of those of the same day, and of their parts."""
    if not figures:
        raise ValueError(f"{subject.name} has left no figures in build/figures")
    file = RESULTS / f"{datetime.now(UTC):%Y-%m-%d}-{subject.name}.jsonl"
    file.write_text("".join(f"{line}\n" for line in figures))
    _forget_parts(subject)
    return file


def _call(command: str, source: str) -> int:
    """In a session of its own, which ends with this process: servers and simulations must not outlive it."""
    # Variables of make's own command line, as ONLY is, would be taken for those of the command.
    env = {name: value for name, value in os.environ.items() if name not in ("ONLY", "ALL")} | {AT_START: source}
    with subprocess.Popen(shlex.split(command), cwd=REPOSITORY, env=env, start_new_session=True) as child:
        try:
            return child.wait(HOURS_MAX * 3600)
        except BaseException:
            os.killpg(child.pid, signal.SIGTERM)
            child.wait(_END_GRACE_S)
            raise


def _counts() -> dict[Path, int]:
    return {file: len(lines(file)) for file in FOLDER.glob("*.jsonl")}


def _new_figures(subject: Subject, since: dict[Path, int]) -> list[Figure]:
    """Figures of this subject that were kept after `since`."""
    found = []
    for file in sorted(FOLDER.glob("*.jsonl")):
        for figure in lines(file)[since.get(file, 0) :]:
            about = subject_of(figure["command"])
            if about and about.name == subject.name:
                found.append(figure)
    return found
