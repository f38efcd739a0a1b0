"""`make chaos GRAY=1`: failures that are not clean, how long a group of three stood still for each, and false alarms.

A gap is the longest time of a run without an acknowledgement, of either of its two groups: from the fault on, through
its discovery, the next epoch and the clients' way to the next head.
"""

from __future__ import annotations

import math
from typing import Any

from quorate_chaos.faults.processes import SHORT_STOPS_S
from quorate_chaos.trial import FALSE_ALARM
from quorate_harness.figures import Figure

FAULTS = ("cut_link", "one_way", "very_lossy_link", "slow_disk", "full_disk")
# Two replicas cannot outvote one another: which of them is at fault is not known.
DEGREE = 3
GAP_MS_GOAL = 1_500
PERCENT = 99
STOPS = "short_stops"  # no failure: whatever is done about it is a false alarm
STOPS_S_LEAST = 3_600  # fewer stops than an hour's do not show that there are no false alarms


def found(runs: list[dict[str, Any]]) -> list[Figure]:
    """The gaps' 99th percentile over all runs, and of each fault; false alarms. `runs` are contents of run.json."""
    faulty = [run for run in runs if run["fault"] in FAULTS]
    stops = [run for run in runs if run["fault"] == STOPS and run["groups"]]
    figures = []
    if gaps(faulty):
        worst = percentile(gaps(faulty), PERCENT)
        figures.append(Figure("gray_gap_p99_ms", worst, "ms", GAP_MS_GOAL, note=f"{len(faulty)} runs"))
    for fault in FAULTS:
        own = gaps([run for run in runs if run["fault"] == fault])
        if own:
            note = f"median {percentile(own, 50)}, of {len(own)} runs"
            figures.append(Figure(f"gray_{fault}_gap_max_ms", max(own), "ms", note=note))
    if stops:
        seconds = len(stops) * SHORT_STOPS_S
        alarms = sum(text.startswith(FALSE_ALARM) for run in stops for text in run["trouble"])
        goal = 0 if seconds >= STOPS_S_LEAST else None
        figures.append(Figure("gray_false_alarms", alarms, "alarms", goal, note=f"{seconds / 60:.0f} min of stops"))
        figures.append(Figure("gray_short_stops_s", seconds, "s"))
    return figures


def gaps(runs: list[dict[str, Any]]) -> list[int]:
    return sorted(max(int(group["longest_gap_ms"]) for group in run["groups"]) for run in runs if run["groups"])


def percentile(values: list[int], percent: int) -> int:
    """The smallest of the sorted values that is not below so many percent of them."""
    return values[max(0, math.ceil(len(values) * percent / 100) - 1)]
