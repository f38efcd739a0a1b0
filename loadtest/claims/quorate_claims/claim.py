"""A claim: a name to choose it by, and a measurement that gives figures. Several claims share the statistics here."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from quorate_harness.figures import Figure
from quorate_local.display import Display


@dataclass(frozen=True)
class Conditions:
    """`quick`: the smallest run that shows whether it works. `folder`: for state, logs and results of this claim."""

    quick: bool
    folder: Path
    display: Display
    trials: int | None = None  # for a claim that repeats something; None: its own number


@dataclass(frozen=True)
class Claim:
    name: str
    sentence: str
    measure: Callable[[Conditions], list[Figure]]


def median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def quantile(values: Sequence[float], share: float) -> float:
    """The least value that at least `share` of the values do not exceed: of up to 100, p99 is the greatest."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
