"""Figure 12 of Pulsar in small: rates of a project's groups, as `make claims ONLY=guarantee` had them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quorate_local.options import REPOSITORY

TRACES = REPOSITORY / "build" / "claims" / "guarantee"
FIRST = "make claims ONLY=guarantee"
SHOWN = 3  # rounds
OVER_S = 0.4  # a rate is the mean of so long


@dataclass(frozen=True)
class Trace:
    """`rates`: of each group, (seconds, appends/s). `promised`: what the policy gives each, as steps of (seconds,
    appends/s)."""

    rates: list[list[tuple[float, float]]]
    promised: list[list[tuple[float, float]]]


def trace(folder: Path = TRACES) -> Trace:
    """`FileNotFoundError` before the claim was measured."""
    rounds = json.loads((folder / "rounds.json").read_text())[:SHOWN]
    groups = range(len(rounds[0]["acked"]))
    return Trace(
        [[point for one in rounds for point in _rates(one["acked"][group])] for group in groups],
        [[(at, rates[group]) for one in rounds for at, rates in one["promised"]] for group in groups],
    )


def _rates(acked: list[Any]) -> list[tuple[float, float]]:
    """From the load's begin to its end: before and afterwards nothing is appended."""
    found = [(float(acked[0][0]), 0.0)]
    first = 0
    for at, count in acked:
        while at - acked[first][0] > OVER_S:
            first += 1
        before_at, before = acked[first]
        if at > before_at:
            found.append((at, (count - before) / (at - before_at)))
    return [*found, (found[-1][0], 0.0)]
