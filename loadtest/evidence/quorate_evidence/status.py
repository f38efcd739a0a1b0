"""How old published evidence is: a line for each subject."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from quorate_evidence.published import Published, newest
from quorate_harness.evidence import Subject, subjects
from quorate_local.options import REPOSITORY

RESULTS = REPOSITORY / "loadtest" / "results"


@dataclass(frozen=True)
class Status:
    """`is_fresh`: it speaks for the sources as they are."""

    subject: Subject
    published: Published | None
    is_fresh: bool

    def line(self) -> str:
        return f"{self.subject.name:<14} {self._day():<12} {self._verdict()}"

    def _day(self) -> str:
        return self.published.day if self.published else "never"

    def _verdict(self) -> str:
        again = self.subject.run or f"{self.subject.command}, on a quiet machine"
        if self.published is None:
            return f"nothing is published: {again}"
        missed = f"; MISSED: {', '.join(self.published.missed)}" if self.published.missed else ""
        if self.is_fresh:
            return f"speaks for these sources{missed}"
        return f"older than the sources that it is about: {again}{missed}"


def statuses(results: Path = RESULTS, root: Path = REPOSITORY) -> list[Status]:
    published = newest(results)
    return [_status(subject, published.get(name), root) for name, subject in subjects().items()]


def _status(subject: Subject, published: Published | None, root: Path) -> Status:
    is_fresh = published is not None and published.sources == {subject.source(root)}
    return Status(subject, published, is_fresh)


def text(found: list[Status]) -> list[str]:
    stale = sum(not status.is_fresh for status in found)
    return [*(status.line() for status in found), f"{len(found) - stale} of {len(found)} are of these sources."]
