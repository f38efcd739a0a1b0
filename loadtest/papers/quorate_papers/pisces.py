"""Figures 5 to 8 of Pisces: tenants' shares and latencies, as `make claims ONLY=partitions` had them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quorate_local.options import REPOSITORY

TRACES = REPOSITORY / "build" / "claims" / "partitions"
FIRST = "make claims ONLY=partitions"
ADAPTED_S = 24.0  # rates follow the keys until then
CASES = {
    "even": "Even keys",
    "skewed": "Keys by Zipf's law",
    "doubled": "Zipf, half of the tenants want twice as much",
    "weighted": "Zipf, weights 100 : 10 : 1",
    "isolated": "Zipf, half of the tenants keep within their reservations",
}


@dataclass(frozen=True)
class Trace:
    """By tenant. `shares`: throughput over the reservation, at each time. `latencies`: p50 and p99 in ms once rates
    have adapted. `pressed`: appends that are offered, over the reservation."""

    title: str
    at_s: list[float]
    shares: list[list[float]]
    latencies: list[tuple[float, float]]
    pressed: list[float]


def traces(folder: Path = TRACES) -> list[Trace]:
    """`FileNotFoundError` before the claim was measured."""
    return [_trace(json.loads((folder / f"{name}.json").read_text()), title) for name, title in CASES.items()]


def _trace(document: dict[str, Any], title: str) -> Trace:
    rows = document["rows"]
    tenants = range(len(rows[0]["shares"]))
    adapted = [row for row in rows if row["at_s"] > ADAPTED_S]
    return Trace(
        title,
        [row["at_s"] for row in rows],
        [[row["shares"][tenant] for row in rows] for tenant in tenants],
        [(_median_of(adapted, "p50_ms", tenant), _median_of(adapted, "p99_ms", tenant)) for tenant in tenants],
        document["pressed"],
    )


def _median_of(rows: list[dict[str, Any]], which: str, tenant: int) -> float:
    values = sorted(float(row[which][tenant]) for row in rows)
    return values[len(values) // 2]
