"""The trace is the real one, and a replay offers exactly its requests, when they are due."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate_demo.trace import Schedule, busiest_stretch, load_day


def test_day_15_is_whole() -> None:
    requests = load_day(15)
    assert (len(requests), sum(requests), max(requests)) == (1440, 856_236, 1151)


def test_a_day_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="no day 99"):
        load_day(99)


def test_the_busiest_stretch_is_found() -> None:
    assert busiest_stretch([1, 2, 9, 9, 1], 2) == 2
    assert busiest_stretch([1, 2, 3], 3) == 0


minutes = st.lists(st.integers(0, 50), min_size=1, max_size=20).filter(any)


@given(minutes, st.floats(0.1, 60))
def test_every_entry_is_offered_once_in_time_and_in_order(requests: list[int], seconds: float) -> None:
    schedule = Schedule(0, requests, seconds)
    due_at_s = [schedule.due_at_s(number) for number in range(schedule.total)]
    assert due_at_s == sorted(due_at_s)
    assert schedule.due(seconds) == schedule.total
    for number, at_s in enumerate(due_at_s):
        assert 0 <= at_s < seconds
        assert schedule.due(at_s - seconds * 1e-6) <= number + 1
        assert schedule.due(at_s + seconds * 1e-6) > number
        minute = schedule.minute_of(number)
        assert sum(requests[:minute]) <= number < sum(requests[: minute + 1]) == schedule.end_of_minute(minute)


def test_the_peak_is_of_the_busiest_minute() -> None:
    assert Schedule(0, [10, 30, 20], 3.0).peak_per_s == 30
