"""Reads within an SLA beside a flood of another tenant's reads, on one thread of one server.

A calm tenant reads pages at a fixed rate, within its reservation, and appends besides. The flood keeps hundreds of
pages under way and has reserved nothing. Rounds of three follow one another: the calm tenant alone, beside the flood,
and beside the flood on the same server without isolation (SIGUSR1 switches it).
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from quorate_claims.claim import Conditions
from quorate_claims.driving import ended, start
from quorate_harness.figures import Figure
from quorate_harness.fleet import Fleet, fleet
from quorate_harness.quantiles import median

ROUNDS = 5
SECONDS = 4.0
ENTRY_BYTES, PAGE_ENTRIES = 1_024, 16
CALM_PAGES_PER_S, CALM_APPENDS_PER_S = 200, 200
RESERVED_READS_PER_S = 2 * CALM_PAGES_PER_S * PAGE_ENTRIES  # it uses half of its reservation
FLOOD_PAGES, FLOOD_CONNECTIONS = 2_048, 64
ALONE, BESIDE, UNISOLATED = "alone", "beside the flood", "beside it without isolation"


@dataclass(frozen=True)
class Calm:
    """Results of the calm tenant, and the flood's beside it."""

    pages_per_s: float
    read_p99_ms: float
    append_p99_ms: float
    flood_entries_per_s: float


def measure(conditions: Conditions) -> list[Figure]:
    rounds = 1 if conditions.quick else ROUNDS
    found: dict[str, list[Calm]] = {ALONE: [], BESIDE: [], UNISOLATED: []}
    with fleet(conditions.folder, conditions.display, 1, server_env={"QUORATE_MEASURE_ISOLATION": "true"}) as servers:
        calm, flood = (_filled(servers, reads_per_s) for reads_per_s in (RESERVED_READS_PER_S, 0))
        pid = servers.pid("s1")
        for _ in range(rounds):
            for way in found:
                if way == UNISOLATED:
                    os.kill(pid, signal.SIGUSR1)
                one = _once(servers, calm, flood if way != ALONE else None)
                if way == UNISOLATED:
                    os.kill(pid, signal.SIGUSR1)
                found[way].append(one)
                conditions.display.line(
                    f"  {way}: {one.pages_per_s:.0f} pages/s, p99 {one.read_p99_ms:.1f} ms, appends p99 "
                    f"{one.append_p99_ms:.1f} ms; flood {one.flood_entries_per_s:,.0f} entries/s"
                )
    return figures(found)


def figures(found: dict[str, list[Calm]]) -> list[Figure]:
    rates = [one.pages_per_s / CALM_PAGES_PER_S for one in found[BESIDE]]
    p99s = {way: median([one.read_p99_ms for one in calms]) for way, calms in found.items()}
    appends = {way: median([one.append_p99_ms for one in calms]) for way, calms in found.items()}
    floods = {way: median([one.flood_entries_per_s for one in calms]) for way, calms in found.items()}
    about = f"median of {len(rates)} rounds; alone {p99s[ALONE]:.1f} ms, without isolation {p99s[UNISOLATED]:.1f} ms; "
    about += f"the flood had {floods[BESIDE]:,.0f} entries/s of {ENTRY_BYTES} bytes, {floods[UNISOLATED]:,.0f} without"
    beside = f"alone {appends[ALONE]:.1f} ms, without isolation {appends[UNISOLATED]:.1f} ms"
    return [
        Figure("read_isolation_rate_ratio", median(rates), "ratio", 0.99, True, "pages/s over those asked for"),
        Figure("read_isolation_p99_ms", p99s[BESIDE], "ms", 50, note=about),
        Figure("read_isolation_append_p99_ms", appends[BESIDE], "ms", 10, note=beside),
        Figure("read_isolation_p99_ratio", p99s[BESIDE] / p99s[UNISOLATED], "ratio", 0.5, note="over the same without"),
    ]


def _filled(servers: Fleet, reads_per_s: int) -> Path:
    """A handle of a tenant's group whose log has 16 MB in batches as long as a page."""
    sla = {"durability": "in_memory", "replication_degree": 1, "request_size_bytes": ENTRY_BYTES}
    rates = {"rate_per_s": 5_000, "read_rate_per_s": reads_per_s}
    group = servers.admit_group(str(uuid4()), retention_bytes=64 << 20, **sla, **rates)
    servers.wait_active({group})
    path = servers.folder / f"{group}.json"
    path.write_text(json.dumps(servers.signed_handle(group)))
    _drive(servers, path, "append", ["--size", str(ENTRY_BYTES), "--batch-entries-max", str(PAGE_ENTRIES),
                                     "--outstanding", "64", "--pace", "--seconds", "3", "--warmup", "0"])  # fmt: skip
    return path


def _once(servers: Fleet, calm: Path, flood: Path | None) -> Calm:
    with _flooding(servers, flood) as flooded:
        reads = start(servers, calm, "read", ["--rate", str(CALM_PAGES_PER_S), "--outstanding", "64", *_pages()])
        appends = ["--size", str(ENTRY_BYTES), "--rate", str(CALM_APPENDS_PER_S), "--warmup", "1"]
        appended = _drive(servers, calm, "append", [*appends, "--seconds", str(SECONDS)])
        read = ended(*reads)
    return Calm(
        read["pages_per_s"],
        read["p99_us"] / 1_000,
        appended["p99_us"] / 1_000,
        flooded["entries_per_s"] if flooded else 0.0,
    )


@contextmanager
def _flooding(servers: Fleet, flood: Path | None) -> Iterator[dict[str, float]]:
    """The flood goes on for as long as the calm tenant is measured; what it got is known afterwards."""
    found: dict[str, float] = {}
    if flood is None:
        yield found
        return
    of = ["--outstanding", str(FLOOD_PAGES), "--connections", str(FLOOD_CONNECTIONS), *_pages()]
    running = start(servers, flood, "read", of)
    time.sleep(0.3)
    yield found
    found |= ended(*running)


def _pages() -> list[str]:
    return ["--page-entries", str(PAGE_ENTRIES), "--seconds", str(SECONDS), "--warmup", "1"]


def _drive(servers: Fleet, handle: Path, what: str, flags: list[str]) -> dict[str, float]:
    return ended(*start(servers, handle, what, flags))
