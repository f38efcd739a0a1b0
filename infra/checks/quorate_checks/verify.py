"""Runs the checks: `verify` looks, `fix` mends, `gen` generates."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from quorate_checks.checks import CHECKS, Check
from quorate_checks.commands import Command, Finished, interrupted, interruptible, run
from quorate_checks.counts import Counts
from quorate_local.display import Display
from quorate_local.options import REPOSITORY

LOGS = REPOSITORY / "build" / "verify"
OUTPUT_LINES_MAX = 60
AT_ONCE = 2


def verify(
    display: Display,
    failed: list[str],
    took: Callable[[str, Finished], None],
    checks: Sequence[Check] = CHECKS,
    yields: bool = False,
) -> Counts:
    """Run the checks, two at a time: most use one processor. Show the output of those that fail, add their names to
    `failed`, and report how each ended to `took`."""
    passed = 0
    with ThreadPoolExecutor(AT_ONCE) as pool, interruptible():
        running = {pool.submit(_run, check, check.check, display, yields): check for check in checks}
        for done in as_completed(running):
            check, finished = running[done], done.result()
            if interrupted.is_set():
                break  # the others have not run: nothing is to be said of them
            took(f"check: {check.name}", finished)
            if finished.exit_code == 0:
                passed += 1
                display.line(f"  ok      {check.name:<40} {finished.seconds:6.1f} s")
                if check.tells:
                    _show(finished, display)
            else:
                failed.append(f"check: {check.name}")
                _show_failed(check, finished, display)
    return Counts(passed, len(checks) - passed)


def _show_failed(check: Check, finished: Finished, display: Display) -> None:
    display.line(f"  FAILED  {check.name:<40} {finished.seconds:6.1f} s")
    _show(finished, display)
    if check.fix:
        display.line("          `make fix` may mend this")
    if check.gen:
        display.line("          `make gen` writes it again")


def fix(display: Display) -> bool:
    return _run_all([(check, check.fix) for check in CHECKS if check.fix], display)


def gen(display: Display) -> bool:
    return _run_all([(check, check.gen) for check in CHECKS if check.gen], display)


def _run_all(work: list[tuple[Check, Command]], display: Display) -> bool:
    good = True
    for check, command in work:
        finished = _run(check, command, display)
        display.line(f"  {'done  ' if finished.exit_code == 0 else 'FAILED'}  {check.name}")
        if finished.exit_code != 0:
            good = False
            _show(finished, display)
    return good


def _run(check: Check, command: Command, display: Display, yields: bool = False) -> Finished:
    def tell(seconds: float) -> None:
        display.progress(f"  …       {check.name:<26} {seconds:6.1f} s")

    return run(command, _log(check), tell, yields)


def _log(check: Check) -> Path:
    return LOGS / (re.sub(r"\W+", "-", check.name.lower()) + ".log")


def _show(finished: Finished, display: Display) -> None:
    lines = finished.output().splitlines()
    if len(lines) > OUTPUT_LINES_MAX:
        display.line(f"          … all of it in {finished.log.relative_to(REPOSITORY)}")
    for line in lines[-OUTPUT_LINES_MAX:]:
        display.line(f"          {line}")
