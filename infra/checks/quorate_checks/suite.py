"""Runs the parts of `make test`, each bounded in time, and says what each came to.

A part that fails runs once more. Its failures, or tests that passed only then, are repeated at the end, a line each;
the last line is plain and stands alone: `N passed, N failed`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from quorate_checks import failures, verify
from quorate_checks.commands import Finished, run
from quorate_checks.counts import Counts, settle
from quorate_checks.parts import PARTS, REPORTS, Part, report_of
from quorate_local.display import Display
from quorate_local.options import REPOSITORY

LOG_TAIL_LINES = 80
SLOWEST_SHOWN = 10


@dataclass
class Findings:
    """Lines printed at the end. An `unsteady` test failed once and passed when its part ran again."""

    failed: list[str] = field(default_factory=list)
    unsteady: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)  # by part, runs that were repeated too

    def took(self, title: str, seconds: float) -> None:
        self.seconds[title] = seconds

    def show_slowest(self, display: Display) -> None:
        """The time goes there: a part that grows shows before the whole is too long."""
        slowest = sorted(self.seconds.items(), key=lambda part: -part[1])[:SLOWEST_SHOWN]
        minutes = sum(self.seconds.values()) / 60
        display.line(f"\nThe {len(slowest)} slowest of {len(self.seconds)} parts, {minutes:.1f} minutes in all")
        for title, seconds in slowest:
            display.line(f"  {title:<32}{seconds:>8.1f} s")

    def show(self, display: Display) -> None:
        for heading, lines in [
            ("What failed", self.failed),
            ("What passed only when it ran again: look into it", self.unsteady),
        ]:
            if lines:
                display.line(f"\n{heading}")
                for line in lines:
                    display.line(f"  {line}")


def test(display: Display, only: str | None) -> bool:
    """Run the parts of one group, or everything with the checks first; True when nothing failed."""
    REPORTS.mkdir(parents=True, exist_ok=True)
    for report in REPORTS.glob("*.xml"):
        report.unlink()  # a report of an earlier run must not be counted
    total = Counts()
    findings = Findings()
    if only is None:
        display.line("Checks")
        total += verify.verify(display, findings.failed, findings.took)
        display.line()
    display.line(f"{'Tests':<16}{'passed':>8}{'failed':>8}{'skipped':>9}{'time':>10}")
    for part in PARTS:
        if only in (None, part.group, part.name):
            total += _settled(part, findings, display)
    if total.skipped:
        display.line(f"\n{total.skipped} skipped; the logs in {REPORTS.relative_to(REPOSITORY)}/ say why.")
    findings.show_slowest(display)
    findings.show(display)
    display.line(f"\n{total.passed} passed, {total.failed} failed")
    return total.failed == 0


def _settled(part: Part, findings: Findings, display: Display) -> Counts:
    """A part that failed runs once more: many of them measure time, on machines that others use as well.
    A test that fails twice has failed. A test that passes then is named all the same, so that nobody overlooks it."""
    counts, named = _run(part, part.name, findings, display)
    if not counts.failed:
        return counts
    again, named_again = _run(part, f"{part.name} (again)", findings, display)
    if again.failed:
        findings.failed += named_again
    else:
        findings.unsteady += named
    return again


def _run(part: Part, title: str, findings: Findings, display: Display) -> tuple[Counts, list[str]]:
    """The part's counts, and its failures."""

    def tell(seconds: float) -> None:
        display.progress(f"{title:<16}{'running':>25}{seconds:8.0f} s")

    report_of(part.name).unlink(missing_ok=True)  # an earlier attempt's must not be counted
    finished = run(part.command, REPORTS / (re.sub(r"\W+", "-", title).strip("-") + ".log"), tell)
    findings.took(title, finished.seconds)
    counts = settle(part.count(finished), finished.exit_code)
    row = f"{counts.passed:>8}{counts.failed:>8}{counts.skipped:>9}{finished.seconds:>8.1f} s"
    display.line(f"{title:<16}{row}")
    if not counts.failed:
        return counts, []
    _show_end(finished, display)
    return counts, _named(part.name, failures.of_junit(report_of(part.name)) or failures.of_output(finished.output()))


def _named(part: str, found: list[str]) -> list[str]:
    """Lines for the end: a part whose runner names no test is named itself."""
    lines = [f"{part}: {line}" for line in found[: failures.SHOWN_PER_PART_MAX]] or [f"{part}: see its log"]
    hidden = len(found) - failures.SHOWN_PER_PART_MAX
    return [*lines, f"{part}: and {hidden} more"] if hidden > 0 else lines


def _show_end(finished: Finished, display: Display) -> None:
    lines = finished.output().splitlines()
    display.line(f"    the end of {finished.log.relative_to(REPOSITORY)}:")
    for line in lines[-LOG_TAIL_LINES:]:
        display.line(f"    | {line}")
