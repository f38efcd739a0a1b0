"""How soon clients of a deleted group are told, in both languages: the append that waits, and the tail that follows."""

from __future__ import annotations

import json
import time

from quorate_harness.customer import Customer
from quorate_harness.figures import Figure
from quorate_harness.fleet import MeasurementFailed
from quorate_local.display import Display
from quorate_sla.clients import LANGUAGES, Program

REPEATS = 5
TIMEOUT_S = 90
GOAL_MS = 1_000
EXPECTED = "group_not_here"


def measure(customer: Customer, display: Display, quick: bool) -> list[Figure]:
    sla = {"durability": "in_memory", "replication_degree": 2, "request_size_bytes": 64, "rate_per_s": 1_000}
    waits: list[float] = []
    for number in range(1 if quick else REPEATS):
        for language in LANGUAGES:
            group = customer.create_group(f"deleted-{language}-{number}", sla)
            found = _told(customer, Program("deleted", language, group["id"]))
            waits += found
            display.line(f"    {language}: told after {found[0]:.0f} ms (append), {found[1]:.0f} ms (tail)")
    return [
        Figure("deleted_group_answer_ms", round(max(waits)), "ms", GOAL_MS, note=f"slowest of {len(waits)} answers")
    ]


def _told(customer: Customer, program: Program) -> list[float]:
    """Milliseconds from the API's answer to the deletion until the append and the tail ended."""
    process = program.start(customer)
    try:
        assert process.stdout is not None, "it is a pipe"
        if process.stdout.readline().strip() != "ready":
            raise MeasurementFailed(f"no append in {program.language} was acked")
        customer.delete(f"/v1/groups/{program.group_id}")
        deleted_s = time.time()
        out, _ = process.communicate(timeout=TIMEOUT_S)
    finally:
        process.kill()
    answers = json.loads(out)
    for part in ("append", "tail"):
        if EXPECTED not in answers[part]["answer"]:
            raise MeasurementFailed(f"the {part} in {program.language} ended otherwise: {answers[part]['answer']}")
    return [max(0.0, (answers[part]["at_s"] - deleted_s) * 1_000) for part in ("append", "tail")]
