"""Latency counts from when an entry was due, and the gap is the one at the kill."""

from quorate_demo.measure import Batch, acked_runs, failover_gap_ms, latency, rate_per_s
from quorate_demo.trace import Schedule
from quorate_demo.verdict import Run

SECOND_US = 1_000_000
EVERY_10_MS = Schedule(0, [100] * 10, 10.0)  # entry n is due at n × 10 ms


def steady(numbers: range, delay_us: int = 500) -> list[Batch]:
    return [Batch(number, 1, number, number * 10_000 + delay_us) for number in numbers]


def test_a_steady_replay() -> None:
    batches = steady(range(1000))
    found = latency(batches, EVERY_10_MS)
    assert abs(found.p50_us - 500) <= 1
    assert abs(found.p99_us - 500) <= 1
    assert acked_runs(batches) == [Run(0, 0, 1000)]
    assert rate_per_s(batches) == 100


def test_a_stall_counts_for_every_entry_that_was_due_in_it() -> None:
    """One batch of 100 entries, all acknowledged at second 4: the one due at 3.0 s waited a second."""
    stalled = [*steady(range(300)), Batch(300, 100, 300, 4 * SECOND_US), *steady(range(400, 1000))]
    assert latency(stalled, EVERY_10_MS).p99_us > 850_000
    calm = latency(stalled, EVERY_10_MS, without_us=range(3 * SECOND_US, 4 * SECOND_US))
    assert abs(calm.p99_us - 500) <= 1


def test_the_gap_is_the_longest_around_the_kill() -> None:
    batches = [*steady(range(300)), *steady(range(500, 1000))]
    assert failover_gap_ms(batches, kill_us=3 * SECOND_US) == 2010
    assert failover_gap_ms(steady(range(1000)), kill_us=3 * SECOND_US) == 10


def test_a_gap_long_before_the_kill_is_not_the_failover() -> None:
    batches = [*steady(range(100)), *steady(range(300, 1000))]
    assert failover_gap_ms(batches, kill_us=5 * SECOND_US) == 10


def test_nothing_acknowledged_is_not_an_error() -> None:
    assert rate_per_s([]) == 0
    assert latency([], EVERY_10_MS).p99_us == 0
    assert failover_gap_ms([], 0) == 0
