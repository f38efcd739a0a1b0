"""Figure 14 of Pulsar: the estimate of a capacity that changes under load, as `make claims ONLY=capacity` had it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from quorate_local.options import REPOSITORY

TRACES = REPOSITORY / "build" / "claims" / "capacity"
FIRST = "make claims ONLY=capacity"
RESOURCES = {"cpu": ("Processor", "cores"), "disk": ("Disk", "operations/s")}


@dataclass(frozen=True)
class Trace:
    """(seconds, amount in units of the resource each second)"""

    title: str
    estimates: list[tuple[float, float]]
    served: list[tuple[float, float]]


def traces(folder: Path = TRACES) -> list[Trace]:
    """`FileNotFoundError` before the claim was measured."""
    found = []
    for name, (title, unit) in RESOURCES.items():
        trace = json.loads((folder / f"{name}.json").read_text())
        estimates, served = ([(at, amount) for at, amount in trace[what]] for what in ("estimates", "served"))
        found.append(Trace(f"{title}, {unit}", estimates, served))
    return found
