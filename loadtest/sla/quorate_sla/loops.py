"""The loop that the SDKs' READMEs show, as a new developer runs it: it loses nothing, whatever the size of entries.

The entries are those of a group that was sold for smaller ones, for just these, and for larger ones. Each loop appends
for half a minute of the group's budget, so that entries that wait too long would meet their deadline of ten seconds.
"""

from __future__ import annotations

import json

from quorate_harness.customer import Customer
from quorate_harness.figures import Figure
from quorate_harness.fleet import MeasurementFailed
from quorate_local.display import Display
from quorate_sla.clients import LANGUAGES, Program

RATE_PER_S = 1_000
DECLARED_BYTES = 64
SIZES_BYTES = (16, 60, 100, 4_096)
SECONDS = 30
TIMEOUT_S = 180


def measure(customer: Customer, display: Display, quick: bool) -> list[Figure]:
    """Run the loops of all sizes and languages at once, each on a group of its own."""
    seconds = SECONDS // 5 if quick else SECONDS
    sla = {"durability": "in_memory", "replication_degree": 2}
    sla |= {"request_size_bytes": DECLARED_BYTES, "rate_per_s": RATE_PER_S}
    running = []
    for language in LANGUAGES:
        for size in SIZES_BYTES:
            group = customer.create_group(f"loop-{language}-{size}", sla)
            entries = entries_of(size, seconds)
            process = Program("loop", language, group["id"]).start(customer, size, entries)
            running.append((language, size, entries, process))
    found: dict[str, int] = {}
    try:
        for language, size, entries, process in running:
            out, _ = process.communicate(timeout=TIMEOUT_S)
            if process.returncode != 0:
                raise MeasurementFailed(f"the loop in {language} ended with {process.returncode}")
            answer = json.loads(out)
            if answer["acked"] + answer["failed"] != entries:
                raise MeasurementFailed(f"the loop in {language} lost count: {answer}")
            found[f"{language} {size} B"] = answer["failed"]
            display.line(
                f"    {language}, {size} B: {answer['failed']} of {entries} refused {answer['first']}".rstrip()
            )
    finally:
        for *_, process in running:
            process.kill()
    return [figure(found, seconds)]


def entries_of(size_bytes: int, seconds: int) -> int:
    """As many entries as the budget lets pass in this time, if bytes beyond the declared size cost as much again."""
    return RATE_PER_S * seconds * DECLARED_BYTES // max(size_bytes, DECLARED_BYTES)


def figure(failed: dict[str, int], seconds: int) -> Figure:
    note = f"loops of {seconds} s at {RATE_PER_S}/s of {DECLARED_BYTES} B: {', '.join(failed)}"
    return Figure("readme_loop_refused_entries", sum(failed.values()), "entries", 0, note=note)
