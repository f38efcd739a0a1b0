"""A quiet client beside one that floods its group: how long its appends take, over how long they take alone.

Quiet clients append one entry each 200 ms. Another client floods the same group for some seconds, then rests, then
floods again. Then it floods another group, which shares the servers alone.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from quorate_harness.customer import Customer
from quorate_harness.figures import Figure
from quorate_harness.fleet import MeasurementFailed
from quorate_local.display import Display
from quorate_sla.clients import Program

RATE_PER_S = 1_000
DECLARED_BYTES = 64
SIZES_BYTES = (16, 60, 100, 4_096)
HABITS = ("bursts", "singles")
QUIET_CLIENTS = 3
EVERY_MS = 200
PHASE_S = 10
SETTLE_S = 2.0  # between phases: what a flood left behind passes
READY_TIMEOUT_S = 20
GOAL_RATIO = 2.0


@dataclass(frozen=True)
class Append:
    at_s: float
    took_ms: float
    error: str


@dataclass(frozen=True)
class Case:
    """One size and habit: appends of quiet clients while nobody, their group or another group was flooded."""

    name: str
    alone: list[Append]
    beside: list[Append]
    other: list[Append]

    @property
    def ratio(self) -> float:
        return p99_ms(self.beside) / p99_ms(self.alone)

    @property
    def other_ratio(self) -> float:
        return p99_ms(self.other) / p99_ms(self.alone)

    @property
    def failed(self) -> int:
        return sum(bool(each.error) for each in (*self.alone, *self.beside, *self.other))


def p99_ms(appends: Iterable[Append]) -> float:
    """99 of 100 appends took no longer."""
    took = sorted(each.took_ms for each in appends)
    if not took:
        raise MeasurementFailed("no append was measured")
    return took[-(-99 * len(took) // 100) - 1]


def measure(customer: Customer, display: Display, quick: bool) -> list[Figure]:
    cases = []
    for size in SIZES_BYTES[:1] if quick else SIZES_BYTES:
        for habit in HABITS:
            case = _case(customer, size, habit, PHASE_S // 3 if quick else PHASE_S)
            display.line(
                f"    {case.name}: p99 {p99_ms(case.alone):.1f} ms alone, {p99_ms(case.beside):.1f} ms beside a flood,"
                f" {p99_ms(case.other):.1f} ms while another group is flooded; {case.failed} failed"
            )
            cases.append(case)
    return figures(cases)


def figures(cases: list[Case]) -> list[Figure]:
    """The worst case counts."""
    worst = max(cases, key=lambda case: case.ratio)
    counted = sum(len(case.beside) for case in cases)
    note = (
        f"worst of {len(cases)} cases, {worst.name}; median {median(case.ratio for case in cases):.2f};"
        f" {counted} appends beside floods"
    )
    others = f"the same while the flood is in another group on the servers; median of {len(cases)} cases"
    return [
        Figure("group_neighbour_p99_ratio", round(worst.ratio, 2), "ratio", GOAL_RATIO, note=note),
        Figure("group_neighbour_failed_entries", sum(case.failed for case in cases), "entries", 0),
        Figure(
            "other_group_neighbour_p99_ratio",
            round(median(case.other_ratio for case in cases), 2),
            "ratio",
            note=others,
        ),
    ]


def _case(customer: Customer, size: int, habit: str, phase_s: float) -> Case:
    sla = {"durability": "in_memory", "replication_degree": 2}
    sla |= {"request_size_bytes": DECLARED_BYTES, "rate_per_s": RATE_PER_S}
    names = (f"quiet-{habit}-{size}", f"other-{habit}-{size}")
    own, other = (customer.create_group(name, sla)["id"] for name in names)
    phases = [("alone", None), ("beside", own), ("other", other)] * 2
    seconds = len(phases) * (phase_s + SETTLE_S) + READY_TIMEOUT_S
    quiet = [Program("quiet", "python", own).start(customer, size, EVERY_MS, seconds) for _ in range(QUIET_CLIENTS)]
    spans: list[tuple[str, float, float]] = []
    try:
        for process in quiet:
            _ready(process)
        for name, flooded in phases:
            time.sleep(SETTLE_S)
            spans.append((name, *_phase(customer, size, habit, phase_s, flooded)))
    finally:
        for process in quiet:
            process.terminate()
    appends = [append for process in quiet for append in _appends(process.communicate()[0])]
    found: dict[str, list[Append]] = {"alone": [], "beside": [], "other": []}
    for name, begin_s, end_s in spans:
        found[name] += [each for each in appends if begin_s <= each.at_s < end_s]
    for group_id in (own, other):
        customer.delete(f"/v1/groups/{group_id}")
    return Case(f"{habit} of {size} B", found["alone"], found["beside"], found["other"])


def _phase(customer: Customer, size: int, habit: str, phase_s: float, flooded: str | None) -> tuple[float, float]:
    """The wall-clock time of the phase: with a flood, from its first append on."""
    if flooded is None:
        begin_s = time.time()
        time.sleep(phase_s)
        return begin_s, time.time()
    flood = Program("flood", "python", flooded).start(customer, size, phase_s + READY_TIMEOUT_S, habit)
    try:
        _ready(flood)
        begin_s = time.time()
        time.sleep(phase_s)
        if flood.poll() is not None:
            raise MeasurementFailed("the flood ended early")
        return begin_s, time.time()
    finally:
        flood.kill()
        flood.communicate()


def _ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None, "it is a pipe"
    if process.stdout.readline().strip() != '"ready"':
        raise MeasurementFailed("a client could not append")


def _appends(out: str) -> list[Append]:
    """A last line may be cut off."""
    lines = out.splitlines(keepends=True)
    return [Append(**json.loads(line)) for line in lines if line.startswith("{") and line.endswith("}\n")]
