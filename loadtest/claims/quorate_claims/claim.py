"""A claim: a name to choose it by, and a measurement that gives figures."""

from __future__ import annotations

from collections.abc import Callable
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
