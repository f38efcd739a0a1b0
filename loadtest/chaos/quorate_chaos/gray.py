"""`make chaos GRAY=1`: failures that are not clean, and how long a group of three stood still for each.

A gap is the longest time of a run without an acknowledgement, of either of its two groups: from the fault on, through
its discovery, the next epoch and the clients' way to the next head.
"""

from __future__ import annotations

import math
from typing import Any

from quorate_harness.figures import Figure

FAULTS = ("cut_link", "one_way", "very_lossy_link", "slow_disk", "full_disk")
# Two replicas cannot outvote one another: which of them is at fault is not known.
DEGREE = 3
GAP_MS_GOAL = 1_500
PERCENT = 99


def found(runs: list[dict[str, Any]]) -> list[Figure]:
    """The gaps' 99th percentile over all runs, and of each fault. `runs` are contents of run.json."""
    figures = [Figure("gray_gap_p99_ms", percentile(gaps(runs), PERCENT), "ms", GAP_MS_GOAL, note=f"{len(runs)} runs")]
    for fault in FAULTS:
        own = gaps([run for run in runs if run["fault"] == fault])
        if own:
            note = f"median {percentile(own, 50)}, of {len(own)} runs"
            figures.append(Figure(f"gray_{fault}_gap_max_ms", max(own), "ms", note=note))
    return figures


def gaps(runs: list[dict[str, Any]]) -> list[int]:
    return sorted(max(int(group["longest_gap_ms"]) for group in run["groups"]) for run in runs if run["groups"])


def percentile(values: list[int], percent: int) -> int:
    """The smallest of the sorted values that is not below so many percent of them."""
    return values[max(0, math.ceil(len(values) * percent / 100) - 1)]
