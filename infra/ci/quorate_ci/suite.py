"""Runs the parts of `make test`, each bounded in time, and says what each came to.

The last line is plain and stands alone: `N passed, N failed`.
"""

from __future__ import annotations

from quorate_ci import verify
from quorate_ci.commands import Finished, run
from quorate_ci.counts import Counts, settle
from quorate_ci.parts import PARTS, REPORTS, Part
from quorate_local.display import Display
from quorate_local.options import REPOSITORY

LOG_TAIL_LINES = 80


def test(display: Display, only: str | None) -> bool:
    """Run the parts of one group, or everything with the checks first; True when nothing failed."""
    REPORTS.mkdir(parents=True, exist_ok=True)
    for report in REPORTS.glob("*.xml"):
        report.unlink()  # a report of an earlier run must not be counted
    total = Counts()
    if only is None:
        display.line("Checks")
        total += verify.verify(display)
        display.line()
    display.line(f"{'Tests':<16}{'passed':>8}{'failed':>8}{'skipped':>9}{'time':>10}")
    for part in PARTS:
        if only in (None, part.group, part.name):
            total += _run(part, display)
    if total.skipped:
        display.line(f"\n{total.skipped} skipped; the logs in {REPORTS.relative_to(REPOSITORY)}/ say why.")
    display.line(f"\n{total.passed} passed, {total.failed} failed")
    return total.failed == 0


def _run(part: Part, display: Display) -> Counts:
    def tell(seconds: float) -> None:
        display.progress(f"{part.name:<16}{'running':>25}{seconds:8.0f} s")

    finished = run(part.command, REPORTS / f"{part.name.replace(' ', '-')}.log", tell)
    counts = settle(part.count(finished), finished.exit_code)
    row = f"{counts.passed:>8}{counts.failed:>8}{counts.skipped:>9}{finished.seconds:>8.1f} s"
    display.line(f"{part.name:<16}{row}")
    if counts.failed:
        _show_end(finished, display)
    return counts


def _show_end(finished: Finished, display: Display) -> None:
    lines = finished.output().splitlines()
    display.line(f"    the end of {finished.log.relative_to(REPOSITORY)}:")
    for line in lines[-LOG_TAIL_LINES:]:
        display.line(f"    | {line}")
