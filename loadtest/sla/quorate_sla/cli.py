"""`make sla`: whether the SLA is judged honestly, and clients are told the truth, on the whole stack.

Real servers, real clients. Exits 0 only if every goal was met.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import httpx2

from quorate_harness.customer import Customer, Refused
from quorate_harness.figures import FOLDER, Figure, conclude, keep
from quorate_harness.fleet import MeasurementFailed
from quorate_local import ProcessFailed, Stack, StackOptions, components
from quorate_local.display import Display
from quorate_local.options import REPOSITORY, BadOptions
from quorate_sla import apart, billing, blind, caps, charges, deleted, loops, neighbour, overload

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
PARTS = {
    "loops": "the loop of the READMEs loses nothing",
    "charges": "head, SLA and SDKs charge the same for every batch",
    "deleted": "clients of a deleted group are told at once",
    "neighbour": "a client that floods a group delays another by no more than its share",
    "cap": "spend caps throttle and suspend in time",
    "billing": "the bill is the log, whatever crashes",
    "blind": "faults make exactly the minutes bad that clients saw",
    "overload": "requests beyond a reservation earn no credit, and outages are seen",
}


ON_BURST = {"cap"}  # parts whose groups may use idle capacity, so that they spend faster than they reserved
SHARE = "QUORATE_SHARE"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="quorate-sla", description=__doc__)
    parser.add_argument("--only", choices=PARTS, help="one part: " + "; ".join(f"{k}: {v}" for k, v in PARTS.items()))
    parser.add_argument("--quick", action="store_true", help="the smallest run that shows whether it works")
    parser.add_argument("--folder", type=Path, default=REPOSITORY / "build" / "sla", help="state and logs")
    chosen = parser.parse_args(arguments)
    if arguments is None and chosen.only in (None, "blind"):
        apart.enter()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the stack is stopped then too
    display = Display()
    begun = time.monotonic()
    stack = Stack(_options(chosen.folder / "state"), display)
    figures: list[Figure] = []
    try:
        stack.wipe()
        stack.start()
        for part in [chosen.only] if chosen.only else PARTS:
            display.line(f"{part}: {PARTS[part]}")
            _set_sharing(stack, part in ON_BURST)
            found = _measure(part, stack, chosen.folder, display, chosen.quick)
            if not chosen.quick:
                keep(found, COMMAND, FOLDER / "sla.jsonl")
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


def _options(state: Path) -> StackOptions:
    """Two workers, two probers, and ports that data stores have again after a crash."""
    options = StackOptions.from_environment(
        state=state, workers=2, probers=2, postgres_port=components.free_port(), redis_port=components.free_port()
    )
    return replace(options, group_ids=apart.group_ids([*options.server_names(), *options.prober_names()]))


def _set_sharing(stack: Stack, on: bool) -> None:
    """Servers take it from the environment at their start."""
    wanted = "idle" if on else "off"
    if os.environ.get(SHARE, "off") != wanted:
        os.environ[SHARE] = wanted
        stack.stop()
        stack.start()


def _measure(part: str, stack: Stack, folder: Path, display: Display, quick: bool) -> list[Figure]:
    measures: dict[str, Callable[[Customer], list[Figure]]] = {
        "loops": lambda customer: loops.measure(customer, display, quick),
        "charges": lambda customer: charges.measure(customer, display, quick),
        "deleted": lambda customer: deleted.measure(customer, display, quick),
        "neighbour": lambda customer: neighbour.measure(customer, display, quick),
        "cap": lambda customer: caps.measure(customer, display, quick),
        "billing": lambda customer: billing.measure(stack, customer, display, quick),
        "blind": lambda customer: blind.measure(stack, customer, display, quick),
        "overload": lambda customer: overload.measure(stack, customer, folder / "overload", display, quick),
    }
    with Customer(stack.api_url, f"sla-{part}") as customer:
        return measures[part](customer)


if __name__ == "__main__":
    sys.exit(main())
