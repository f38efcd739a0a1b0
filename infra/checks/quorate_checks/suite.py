"""Runs the parts of `make test`, each bounded in time, and says what each came to.

Three lanes run side by side: Rust's tests, whole stacks, and all that has one thread or waits.

A part that fails runs once more, with its failed tests alone where its runner can. Its failures, or tests that passed
only then, are repeated at the end, a line each; the last line is plain and stands alone: `N passed, N failed`.
"""

from __future__ import annotations

import re
import shutil
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from quorate_checks import failures, verify
from quorate_checks.checks import CHECKS, RUST_LINTS, RUST_LINTS_OF_BUILD, Check
from quorate_checks.commands import Finished, interrupted, interruptible, run
from quorate_checks.counts import Counts, settle
from quorate_checks.parts import PARTS, REPORTS, Lane, Part, report_of
from quorate_local.display import Display
from quorate_local.options import REPOSITORY

LOG_TAIL_LINES = 80
SLOWEST_SHOWN = 10


@dataclass
class Findings:
    """Lines printed at the end. An `unsteady` test failed once and passed when its part ran again."""

    failed: list[str] = field(default_factory=list)
    unsteady: list[str] = field(default_factory=list)
    finished: dict[str, Finished] = field(default_factory=dict)  # by part, runs that were repeated too

    def took(self, title: str, finished: Finished) -> None:
        self.finished[title] = finished

    def show_slowest(self, display: Display) -> None:
        """The time goes there: a part that grows shows before the whole is too long."""
        slowest = sorted(self.finished.items(), key=lambda part: -part[1].seconds)[:SLOWEST_SHOWN]
        cpu_minutes = sum(one.cpu_seconds for one in self.finished.values()) / 60
        display.line(f"\nThe {len(slowest)} slowest of {len(self.finished)} parts")
        display.line(f"All parts together took {cpu_minutes:.1f} minutes of processor time.")
        display.line(f"  {'':<32}{'time':>10}{'processor':>12}")
        for title, one in slowest:
            display.line(f"  {title:<32}{one.seconds:>8.1f} s{one.cpu_seconds:>10.1f} s")

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
    for cache in REPORTS.glob("*.cache"):
        shutil.rmtree(cache)  # nor its failures be run again
    findings = Findings()
    if only is None:
        total = _run_lanes(findings, display)
    else:
        _show_heading(display)
        total = _run_parts([part for part in PARTS if only in (part.group, part.name)], findings, display)
    if total.skipped:
        display.line(f"\n{total.skipped} skipped; the logs in {REPORTS.relative_to(REPOSITORY)}/ say why.")
    findings.show_slowest(display)
    findings.show(display)
    display.line(f"\n{total.passed} passed, {total.failed} failed")
    return total.failed == 0


def _run_lanes(findings: Findings, display: Display) -> Counts:
    """Everything, each lane in a thread. What may run in any lane runs in the first that is free."""
    _show_heading(display)
    waiting: dict[Lane, deque[Check | Part]] = {lane: deque() for lane in Lane}
    waiting[Lane.RUST].append(RUST_LINTS_OF_BUILD)
    waiting[Lane.ANY].extend(check for check in CHECKS if check is not RUST_LINTS)
    for part in PARTS:
        waiting[part.lane].append(part)

    def run_lane(lane: Lane) -> Counts:
        total = Counts()
        for one in chain(_taken(waiting[lane]), _taken(waiting[Lane.ANY])):
            yields = not (isinstance(one, Part) and one.lane is Lane.STACKS)
            if isinstance(one, Part):
                total += _settled(one, findings, display, yields)
            else:
                total += verify.verify(display, findings.failed, findings.took, [one], yields)
        return total

    with ThreadPoolExecutor(len(Lane)) as lanes, interruptible():
        running = [lanes.submit(run_lane, lane) for lane in Lane]
        return sum((one.result() for one in running), Counts())


def _taken(waiting: deque[Check | Part]) -> Iterator[Check | Part]:
    """Each when its turn comes; several threads may take from the same."""
    while not interrupted.is_set():
        try:
            yield waiting.popleft()
        except IndexError:
            return


def _run_parts(parts: list[Part], findings: Findings, display: Display) -> Counts:
    begun = (_settled(part, findings, display, False) for part in parts if not interrupted.is_set())
    return sum(begun, Counts())


def _show_heading(display: Display) -> None:
    display.line(f"{'Tests':<16}{'passed':>8}{'failed':>8}{'skipped':>9}{'time':>10}")


def _settled(part: Part, findings: Findings, display: Display, yields: bool) -> Counts:
    """A part that failed runs once more, if it may: many of them measure time, on machines that others use as well.
    A test that fails twice has failed. A test that passes then is named all the same, so that nobody overlooks it."""
    counts, named = _run(part, part.name, findings, display, yields)
    if not counts.failed or interrupted.is_set():
        return counts
    if not part.repeats:
        findings.failed += named
        return counts
    only_failed = part.only_failed(findings.finished[part.name])
    repeated = replace(part, command=replace(part.command, argv=[*part.command.argv, *only_failed]))
    again, named_again = _run(repeated, f"{part.name} (again)", findings, display, yields)
    if only_failed and not again.failed and again.passed < counts.failed:
        again, named_again = replace(again, failed=counts.failed - again.passed), named  # some of them did not run
    findings.failed += named_again if again.failed else []
    failed_again = {_test_of(line) for line in named_again} if again.failed else set()
    findings.unsteady += [line for line in named if _test_of(line) not in failed_again]
    if only_failed:
        return Counts(counts.passed + min(again.passed, counts.failed), again.failed, counts.skipped)
    return again


def _run(part: Part, title: str, findings: Findings, display: Display, yields: bool) -> tuple[Counts, list[str]]:
    """The part's counts, and its failures."""
    report_of(part.name).unlink(missing_ok=True)  # an earlier attempt's must not be counted
    finished = run(part.command, _log(title), _progress(title, display), yields)
    findings.took(title, finished)
    counts = settle(part.count(finished), finished.exit_code)
    row = f"{counts.passed:>8}{counts.failed:>8}{counts.skipped:>9}{finished.seconds:>8.1f} s"
    display.line(f"{title:<16}{row}")
    if not counts.failed:
        return counts, []
    _show_end(finished, display)
    return counts, _named(part.name, failures.of_junit(report_of(part.name)) or failures.of_output(finished.output()))


def _log(title: str) -> Path:
    return REPORTS / (re.sub(r"\W+", "-", title).strip("-") + ".log")


def _progress(title: str, display: Display) -> Callable[[float], None]:
    return lambda seconds: display.progress(f"{title:<16}{'running':>25}{seconds:8.0f} s")


def _named(part: str, found: list[str]) -> list[str]:
    """Lines for the end: a part whose runner names no test is named itself."""
    lines = [f"{part}: {line}" for line in found[: failures.SHOWN_PER_PART_MAX]] or [f"{part}: see its log"]
    hidden = len(found) - failures.SHOWN_PER_PART_MAX
    return [*lines, f"{part}: and {hidden} more"] if hidden > 0 else lines


def _test_of(line: str) -> str:
    """Of a line of `_named`, without the reason."""
    return ": ".join(line.split(": ", 2)[:2])


def _show_end(finished: Finished, display: Display) -> None:
    lines = finished.output().splitlines()
    display.line(f"    the end of {finished.log.relative_to(REPOSITORY)}:")
    for line in lines[-LOG_TAIL_LINES:]:
        display.line(f"    | {line}")
