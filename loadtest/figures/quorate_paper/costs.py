"""Filo's Figures 3 and 4: throughput and CPU over durability, size and shards, as `make profile` measured them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from quorate_local.options import REPOSITORY

CELLS = REPOSITORY / "loadtest" / "profiles" / "local-cells.json"
DURABILITIES = ("in_memory", "persistent")


@dataclass(frozen=True)
class Point:
    """Medians of the repeats. `head_us`: CPU of one append at the head; None where roles share servers."""

    durability: str
    shards: int
    size: int
    per_s: float
    cores: float  # of the server that uses most
    busiest: float  # its busiest thread
    head_us: float | None


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    if not isinstance(found, dict) or not found.get("cells"):
        raise ValueError("it has no cells")
    return found


def points(measured: dict[str, Any]) -> list[Point]:
    groups: dict[tuple[str, int, int], list[dict[str, Any]]] = {}
    for cell in measured["cells"]:
        groups.setdefault((cell["durability"], cell["shards"], cell["size_bytes"]), []).append(cell)
    return [_point(*key, cells) for key, cells in sorted(groups.items())]


def _point(durability: str, shards: int, size: int, cells: list[dict[str, Any]]) -> Point:
    def of_servers(what: str) -> float:
        # Of a cell's servers these are cores: nanoseconds each nanosecond.
        return float(median(max(server[what] for server in cell["servers"]) for cell in cells))

    heads = [role["cpu_ns"] / 1_000 for cell in cells for role in cell["roles"] if role["role"] == "head"]
    return Point(
        durability=durability,
        shards=shards,
        size=size,
        per_s=median(cell["acked_per_s"] for cell in cells),
        cores=of_servers("cpu_ns"),
        busiest=of_servers("busiest_ns"),
        head_us=median(heads) if heads else None,
    )


def page(measured: dict[str, Any]) -> str:
    """The numbers of the plot, for people."""
    machine, error = measured["machine"], measured["error"]
    others = error.get("understated_others_cores")
    beside = "" if others is None else f", while others used {others:.2f} cores"
    rows = [
        f"| {point.durability} | {point.shards} | {point.size:,} | {point.per_s:,.0f} | {point.cores:.2f} "
        f"| {point.busiest:.2f} | {'–' if point.head_us is None else f'{point.head_us:.2f}'} |"
        for point in points(measured)
    ]
    table = "\n".join(rows)
    return f"""# Figure 3: what an append costs

{measured["source"]}, on {machine["cores"]} × {machine["cpu"]}; profile `{measured["version"]}`, servers
{measured["servers_version"]}. Three servers and the client share the machine, so throughput is that of all
of them together and no server's own; CPU an append is what the cost profile uses. Its predictions were off
by {error["median"]:.1%} on {len(error["mixes"])} mixed workloads (median of their servers; the
worst {error["worst"]:.1%}). One server used {error["understated"]:.2f} times what was predicted{beside}: of all that is
predicted a promise may use what the safety factor leaves, so beyond one divided by it a promise is broken.

![what an append costs](figure-3.svg)

| durability | shards | bytes | appends/s | cores of a server | its busiest thread | µs of CPU an append, head |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
{table}

The paper's Figure 3: throughput falls with the size of requests, is lower when persistent, and rises with the number
of threads and tenants for small requests; CPU an append rises with size (its Figure 4).
"""
