"""Reads of one size after another, from memory and from the disk: a group each, whose log is written for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quorate_harness.customer import Customer
from quorate_harness.unbudgeted import REQUEST_BYTES, RETENTION_BYTES, SERVERS
from quorate_local import Stack
from quorate_local.layout import write_text

SIZES, ALONE_SIZES = (64, 1_024, 4_096, 16_384, 32_768), (64, 1_024)
PAGE_ENTRIES = 16  # as the batches of appends
FILL_S, FILL_BYTES = 2.0, 2 << 20  # appends for so long; bytes that are under way
OUTSTANDING = 16  # pages, on one connection: the server's thread is busy
OLDEST = "0.4"  # the part of a persistent log that is read: its newest 16 MiB are in memory
# No budget is in the way of what is appended here, and an organization may reserve as much.
SLA = {
    "replication_degree": SERVERS,
    "request_size_bytes": REQUEST_BYTES,
    "rate_per_s": 1_000_000,
    "retention_bytes": RETENTION_BYTES,
}


@dataclass(frozen=True)
class Cell:
    source: str
    size_bytes: int
    page_entries: int


def cells() -> Iterator[Cell]:
    for source in ("memory", "disk"):
        yield from (Cell(source, size, PAGE_ENTRIES) for size in SIZES)
    yield from (Cell("memory", size, 1) for size in ALONE_SIZES)


def measure(
    stack: Stack, driver: list[str], seconds: float, folder: Path, out: Path, run: Callable[[list[str]], None]
) -> None:
    """Writes what each cell costs its server. `driver`: the command, and flags of all."""
    found = []
    with Customer(stack.api_url, "reads") as customer:
        for cell in cells():
            found.append(_one(stack, customer, driver, seconds, folder, cell, run))
    out.write_text(json.dumps(found) + "\n")


def _one(
    stack: Stack,
    customer: Customer,
    driver: list[str],
    seconds: float,
    folder: Path,
    cell: Cell,
    run: Callable[[list[str]], None],
) -> dict[str, Any]:
    name = f"read-{cell.source}-{cell.size_bytes}-{cell.page_entries}"
    group = customer.create_group(name, SLA | {"durability": "persistent" if cell.source == "disk" else "in_memory"})
    answer = customer.get(f"/v1/groups/{group['id']}/handle")
    handle = folder / f"{name}.json"
    write_text(handle, json.dumps(answer), 0o600)
    head = answer["endpoints"][0]["address"]
    pid = stack.processes()[stack.servers_by_address()[head]].identity.pid
    outstanding = max(cell.page_entries, FILL_BYTES // cell.size_bytes // 16 * 16 if cell.page_entries > 1 else 64)
    batches = ["--size", str(cell.size_bytes), "--batch-entries-max", str(cell.page_entries)]
    fill = ["--outstanding", str(min(outstanding, 1_024)), "--seconds", str(FILL_S), "--warmup", "0"]
    run([*driver, "append", "--handle", str(handle), *batches, *fill])
    result = folder / f"{name}.result.json"
    pages = ["--page-entries", str(cell.page_entries), "--outstanding", str(OUTSTANDING), "--server-pid", str(pid)]
    oldest = ["--oldest", OLDEST] if cell.source == "disk" else []
    window = ["--seconds", str(seconds), "--warmup", "0.5", "--json", str(result)]
    run([*driver, "read", "--handle", str(handle), *pages, *oldest, *window])
    read: dict[str, Any] = json.loads(result.read_text())
    customer.delete(f"/v1/groups/{group['id']}")
    return {"source": cell.source, "size_bytes": cell.size_bytes, **read}
