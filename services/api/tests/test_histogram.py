"""Histograms against the contract's definition and against sorting."""

from hypothesis import given
from hypothesis import strategies as st

from quorate_api.telemetry.histogram import BUCKET_MAX, bucket_of, merge, quantile_us, upper_edge_us

VALUES = st.integers(0, (1 << 64) - 1) | st.integers(0, 10_000)


def contract_bucket(value: int) -> int:
    """The definition of docs/internals/telemetry.md, word for word."""
    if value < 32:
        return value
    exponent = len(bin(value)) - 3 - 5  # floor(log2 v) - 5
    return 32 * exponent + (value >> exponent)


def contract_begin(bucket: int) -> int:
    if bucket < 32:
        return bucket
    exponent = bucket // 32 - 1
    return (bucket - 32 * exponent) << exponent


@given(VALUES)
def test_buckets(value: int) -> None:
    bucket = bucket_of(value)
    assert bucket == contract_bucket(value) <= BUCKET_MAX
    assert contract_begin(bucket) <= value <= upper_edge_us(bucket) < contract_begin(bucket + 1)
    assert upper_edge_us(bucket) - value <= value / 31


@given(st.lists(st.lists(VALUES, max_size=30), max_size=5), st.integers(1, 1000))
def test_quantiles_of_merged_histograms(parts: list[list[int]], per_mille: int) -> None:
    histograms = []
    for part in parts:
        histogram: dict[int, int] = {}
        for value in part:
            histogram[bucket_of(value)] = histogram.get(bucket_of(value), 0) + 1
        histograms.append(histogram)
    everything = sorted(value for part in parts for value in part)
    found = quantile_us(merge(histograms), per_mille)
    if not everything:
        assert found is None
        return
    # Sorting gives the value at the quantile's rank; the histogram reports its bucket's upper edge.
    rank = next(n for n in range(1, len(everything) + 1) if n * 1000 >= len(everything) * per_mille)
    assert found == upper_edge_us(bucket_of(everything[rank - 1]))
