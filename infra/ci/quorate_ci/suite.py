"""Runs the parts of `make test`, each bounded in time, and says what each came to.

What failed is repeated at the end, a line each; the last line is plain and stands alone: `N passed, N failed`.
"""

from __future__ import annotations

from quorate_ci import failures, verify
from quorate_ci.commands import Finished, run
from quorate_ci.counts import Counts, settle
from quorate_ci.parts import PARTS, REPORTS, Part, report_of
from quorate_local.display import Display
from quorate_local.options import REPOSITORY

LOG_TAIL_LINES = 80


def test(display: Display, only: str | None) -> bool:
    """Run the parts of one group, or everything with the checks first; True when nothing failed."""
    REPORTS.mkdir(parents=True, exist_ok=True)
    for report in REPORTS.glob("*.xml"):
        report.unlink()  # a report of an earlier run must not be counted
    total = Counts()
    failed: list[str] = []
    if only is None:
        display.line("Checks")
        total += verify.verify(display, failed)
        display.line()
    display.line(f"{'Tests':<16}{'passed':>8}{'failed':>8}{'skipped':>9}{'time':>10}")
    for part in PARTS:
        if only in (None, part.group, part.name):
            total += _run(part, failed, display)
    if total.skipped:
        display.line(f"\n{total.skipped} skipped; the logs in {REPORTS.relative_to(REPOSITORY)}/ say why.")
    if failed:
        display.line("\nWhat failed")
        for line in failed:
            display.line(f"  {line}")
    display.line(f"\n{total.passed} passed, {total.failed} failed")
    return total.failed == 0


def _run(part: Part, failed: list[str], display: Display) -> Counts:
    def tell(seconds: float) -> None:
        display.progress(f"{part.name:<16}{'running':>25}{seconds:8.0f} s")

    finished = run(part.command, REPORTS / f"{part.name.replace(' ', '-')}.log", tell)
    counts = settle(part.count(finished), finished.exit_code)
    row = f"{counts.passed:>8}{counts.failed:>8}{counts.skipped:>9}{finished.seconds:>8.1f} s"
    display.line(f"{part.name:<16}{row}")
    if counts.failed:
        _show_end(finished, display)
        failed += _named(part.name, failures.of_junit(report_of(part.name)) or failures.of_output(finished.output()))
    return counts


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
