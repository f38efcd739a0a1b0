"""`make scale`: metering, reports and bills with 10 000 groups and a year of data, and a day without Redis.

Exits 0 only if every goal was met.
"""

from __future__ import annotations

import argparse
import math
import signal
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import httpx2
import psycopg

from quorate_harness.customer import Refused
from quorate_harness.figures import FOLDER, Figure, conclude, keep
from quorate_harness.fleet import MeasurementFailed
from quorate_local import ProcessFailed
from quorate_local.display import Display
from quorate_local.options import REPOSITORY, BadOptions
from quorate_scale import close, ingest, outage, queries, sizes
from quorate_scale.queries import Waits, p99
from quorate_scale.world import DEGREE, MONTHS, World, world

COMMAND = "make scale"
PARTS = {
    "outage": "a server's telemetry while Redis is away for a day",
    "world": "ingest, queries, sizes and a month's close with many groups",
}
STEPS = (1_000, 3_000, 10_000)  # groups
QUICK_STEPS = (400, 800)
ORGANIZATIONS = 10_000
QUICK_ORGANIZATIONS = 200
FAILURES = (
    BadOptions,
    ProcessFailed,
    Refused,
    MeasurementFailed,
    TimeoutError,
    httpx2.HTTPError,
    psycopg.Error,
    subprocess.SubprocessError,
)


@dataclass(frozen=True)
class Step:
    groups: int
    waits: Waits
    size: sizes.Sizes
    ingested: ingest.Ingested


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="quorate-scale", description=__doc__)
    parser.add_argument("--only", choices=PARTS, help="one part: " + "; ".join(f"{k}: {v}" for k, v in PARTS.items()))
    parser.add_argument("--quick", action="store_true", help="the smallest run that shows whether it works")
    parser.add_argument("--folder", type=Path, default=REPOSITORY / "build" / "scale", help="state and logs")
    chosen = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that everything is stopped then too
    display = Display()
    begun = time.monotonic()
    try:
        figures: list[Figure] = []
        for part in [chosen.only] if chosen.only else PARTS:
            display.line(f"{part}: {PARTS[part]}")
            figures += _measure(part, chosen.folder, display, chosen.quick)
    except KeyboardInterrupt:
        display.line("\nInterrupted; everything is stopped.")
        return 130
    except FAILURES as error:
        display.line(f"  could not be measured: {error}")
        return 1
    if not chosen.quick:
        keep(figures, COMMAND, FOLDER / "scale.jsonl")
    return conclude(figures, time.monotonic() - begun, display)


def _measure(part: str, folder: Path, display: Display, quick: bool) -> list[Figure]:
    if part == "outage":
        return outage.measure(folder, display, quick)
    with world(folder, display) as made:
        return _measure_world(made, display, quick)


def _measure_world(made: World, display: Display, quick: bool) -> list[Figure]:
    steps: list[Step] = []
    for groups in QUICK_STEPS if quick else STEPS:
        made.grow(groups)
        pack_ms = steps[0].size.pack_ms if steps else sizes.pack(made)
        step = Step(groups, queries.measure(made), sizes.measure(made, pack_ms), ingest.measure(made))
        steps.append(step)
        display.line(
            f"    usage {_said(step.waits.usage_ms)}, SLA report {_said(step.waits.sla_ms)},"
            f" open invoice {_said(step.waits.invoice_ms)}; {step.ingested.groups_per_core:.0f} groups per core"
        )
    display.line("  closing the last month")
    closed = close.measure(made, QUICK_ORGANIZATIONS if quick else ORGANIZATIONS)
    return figures_of(steps, closed)


def _said(waits_ms: list[float]) -> str:
    return f"p99 {p99(waits_ms):.0f} ms (median {statistics.median(waits_ms):.0f})"


def figures_of(steps: list[Step], closed: close.Closed) -> list[Figure]:
    last = steps[-1]
    world_note = f"{last.groups} groups, {MONTHS} months; one of 20 customers has a tenth of the groups"
    large_ms = p99(last.waits.invoice_ms)
    return [
        Figure(
            "ingest_groups_per_core", round(last.ingested.groups_per_core), "groups", 50_000, more_is_better=True,
            note=f"{last.ingested.records} records; worker {last.ingested.worker_cpu_s:.1f} s of processor time,"
            f" PostgreSQL {last.ingested.postgres_cpu_s:.1f} s",
        ),
        Figure("usage_query_p99_ms", round(p99(last.waits.usage_ms), 1), "ms", 50, note=f"a day; {world_note}"),
        Figure("sla_report_p99_ms", round(p99(last.waits.sla_ms), 1), "ms", 100, note=f"this month; {world_note}"),
        Figure("invoice_current_p99_ms", round(large_ms, 1), "ms", 100, note=world_note),
        Figure(
            "usage_bytes_per_group_month", round(last.size.per_group_month), "bytes", 100_000,
            note=f"{MONTHS} months of days, and the minutes of {DEGREE} replicas as long as they are kept;"
            f" {last.size.packed_bytes:.0f} bytes for an hour",
        ),
        Figure("usage_pack_ms", round(last.size.pack_ms, 2), "ms", note="processor time for an hour of a group"),
        Figure("month_close_s", round(closed.elapsed_s, 1), "s", 600, note=f"{closed.organizations} organizations"),
        Figure("month_close_off", closed.off, "organizations", 0, note=f"killed after {closed.killed_after}"),
        *_exponents(steps),
    ]  # fmt: skip


def _exponents(steps: list[Step]) -> list[Figure]:
    """Growth over groups: 0 is none, 1 in proportion."""
    of = {
        "usage_query_growth_exponent": [p99(step.waits.usage_ms) for step in steps],
        "sla_report_growth_exponent": [p99(step.waits.sla_ms) for step in steps],
        "invoice_current_growth_exponent": [p99(step.waits.invoice_ms) for step in steps],
        "ingest_cost_growth_exponent": [1 / step.ingested.groups_per_core for step in steps],
        "usage_bytes_growth_exponent": [float(step.size.kept_bytes) for step in steps],
    }
    groups = [step.groups for step in steps]
    return [Figure(name, round(exponent(groups, found), 2), "exponent") for name, found in of.items()]


def exponent(sizes_: list[int], values: list[float]) -> float:
    """The slope of the logarithms, by least squares."""
    points = [(math.log(size), math.log(value)) for size, value in zip(sizes_, values, strict=True)]
    middle = [sum(axis) / len(points) for axis in zip(*points, strict=True)]
    across = sum((x - middle[0]) * (y - middle[1]) for x, y in points)
    return float(across / sum((x - middle[0]) ** 2 for x, _ in points))


if __name__ == "__main__":
    sys.exit(main())
