"""Commit latency at p99 that an SLA promises (`docs/reference/sla.md`). Pure."""

from bisect import bisect_left
from collections.abc import Mapping
from typing import Any

# At the head, by request size: bytes and microseconds. `standard` is at most five times what servers were measured to
# do up to 16 KiB, the largest size of cost profiles.
BOUNDS_US = {
    ("standard", "in_memory"): ((64, 2_000), (1_024, 10_000), (16_384, 25_000), (1_048_576, 100_000)),
    ("standard", "persistent"): ((64, 5_000), (1_024, 20_000), (16_384, 40_000), (1_048_576, 200_000)),
    ("low", "in_memory"): ((64, 1_000), (1_024, 4_000), (16_384, 8_000), (1_048_576, 50_000)),
    ("low", "persistent"): ((64, 2_500), (1_024, 8_000), (16_384, 12_000), (1_048_576, 100_000)),
}


def latency_p99_us(sla: Mapping[str, Any]) -> int:
    """The bound on p99 of a minute's commit latency. Between the sizes of the table it rises evenly."""
    points = BOUNDS_US[sla.get("latency", "standard"), sla["durability"]]
    size = min(max(int(sla["request_size_bytes"]), points[0][0]), points[-1][0])
    place = max(1, bisect_left(points, (size, 0)))
    (low, from_us), (high, to_us) = points[place - 1], points[place]
    return from_us + (to_us - from_us) * (size - low) // (high - low)
