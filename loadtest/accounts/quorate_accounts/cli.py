"""`make accounts`: whether keys, sessions and accounts keep what they promise, on the whole stack.

Exits 0 only if every goal was met.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx2

from quorate_accounts import revocation
from quorate_harness.customer import Customer, Refused
from quorate_harness.figures import FOLDER, Figure, conclude, keep
from quorate_harness.fleet import MeasurementFailed
from quorate_local import ProcessFailed, Stack, StackOptions
from quorate_local.display import Display
from quorate_local.options import REPOSITORY, BadOptions

COMMAND = "make accounts"
FAILURES = (
    BadOptions,
    ProcessFailed,
    Refused,
    MeasurementFailed,
    TimeoutError,
    httpx2.HTTPError,
    subprocess.SubprocessError,
)
PARTS = {"revocation": "servers refuse a revoked key within seconds"}
Measure = Callable[[Customer, Display, bool], list[Figure]]
MEASURES: dict[str, Measure] = {"revocation": revocation.measure}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="quorate-accounts", description=__doc__)
    parser.add_argument("--only", choices=PARTS, help="one part: " + "; ".join(f"{k}: {v}" for k, v in PARTS.items()))
    parser.add_argument("--quick", action="store_true", help="the smallest run that shows whether it works")
    parser.add_argument("--folder", type=Path, default=REPOSITORY / "build" / "accounts", help="state and logs")
    chosen = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the stack is stopped then too
    display = Display()
    stack = Stack(StackOptions.from_environment(state=chosen.folder / "state", servers=3), display)
    figures: list[Figure] = []
    begun = time.monotonic()
    try:
        stack.wipe()
        stack.start()
        for part in [chosen.only] if chosen.only else PARTS:
            display.line(f"{part}: {PARTS[part]}")
            with Customer(stack.api_url, f"accounts-{part}") as customer:
                found = MEASURES[part](customer, display, chosen.quick)
            if not chosen.quick:
                keep(found, COMMAND, FOLDER / "accounts.jsonl")
            figures += found
    except KeyboardInterrupt:
        display.line("\nInterrupted; the stack is stopped.")
        return 130
    except FAILURES as error:
        display.line(f"  could not be measured: {error}")
        return 1
    finally:
        stack.stop()
    return conclude(figures, time.monotonic() - begun, display)


if __name__ == "__main__":
    sys.exit(main())
