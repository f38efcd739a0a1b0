"""`make sla`: whether the SLA is judged honestly, measured on the whole stack with real servers and real clients.

Exits 0 only if every goal was met.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx2

from quorate_harness.customer import Refused
from quorate_harness.figures import FOLDER, Figure, keep, table
from quorate_harness.fleet import MeasurementFailed
from quorate_local import ProcessFailed
from quorate_local.display import Display
from quorate_local.options import REPOSITORY, BadOptions
from quorate_sla import overload

COMMAND = "make sla"
FAILURES = (
    BadOptions,
    ProcessFailed,
    Refused,
    MeasurementFailed,
    TimeoutError,
    httpx2.HTTPError,
    subprocess.SubprocessError,
)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="quorate-sla", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the smallest run that shows whether it works")
    parser.add_argument("--folder", type=Path, default=REPOSITORY / "build" / "sla", help="state and logs")
    chosen = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the stack is stopped then too
    display = Display()
    begun = time.monotonic()
    display.line("overload: requests beyond a reservation earn no credit")
    try:
        figures = overload.measure(chosen.folder / "overload", display, chosen.quick)
    except KeyboardInterrupt:
        display.line("\nInterrupted; the stack is stopped.")
        return 130
    except FAILURES as error:
        display.line(f"  could not be measured: {error}")
        return 1
    if not chosen.quick:
        keep(figures, COMMAND, FOLDER / "sla.jsonl")
    return _conclude(figures, time.monotonic() - begun, display)


def _conclude(figures: list[Figure], seconds: float, display: Display) -> int:
    display.line()
    for line in table(figures):
        display.line(line)
    missed = [figure.name for figure in figures if figure.met is False]
    conclusion = f"MISSED: {', '.join(missed)}." if missed else "Every goal was met."
    display.line(f"\n{conclusion} {seconds:.0f} s.")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
