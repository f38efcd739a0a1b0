"""Latency histograms: log-linear, 32 steps per power of two (docs/internals/telemetry.md). Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping

STEPS = 32
BUCKET_MAX = 32 * 59 + 63  # the bucket of the largest 64-bit value


def bucket_of(value_us: int) -> int:
    if value_us < STEPS:
        return value_us
    exponent = value_us.bit_length() - 6
    return STEPS * exponent + (value_us >> exponent)


def upper_edge_us(bucket: int) -> int:
    """The largest value in the bucket, which quantiles report."""
    if bucket < STEPS:
        return bucket
    exponent = bucket // STEPS - 1
    return ((bucket - STEPS * exponent + 1) << exponent) - 1


def merge(histograms: Iterable[Mapping[int, int]]) -> dict[int, int]:
    merged: Counter[int] = Counter()
    for histogram in histograms:
        merged.update(histogram)
    return dict(merged)


def quantile_us(histogram: Mapping[int, int], per_mille: int) -> int | None:
    """The smallest bucket edge with at least `per_mille` of the values at or below it; None when there are none."""
    total = sum(histogram.values())
    if total == 0:
        return None
    rank = max(1, -(-total * per_mille // 1000))
    seen = 0
    for bucket in sorted(histogram):
        seen += histogram[bucket]
        if seen >= rank:
            return upper_edge_us(bucket)
    raise AssertionError("counts add up to the total")
