"""Conclusions about quiet clients. The measurement needs the whole stack."""

from __future__ import annotations

import pytest

from quorate_harness.fleet import MeasurementFailed
from quorate_sla import neighbour
from quorate_sla.neighbour import Append, Case


def appends(*took_ms: float, error: str = "") -> list[Append]:
    return [Append(float(number), ms, error) for number, ms in enumerate(took_ms)]


def test_one_of_a_hundred_may_take_long() -> None:
    assert neighbour.p99_ms(appends(*[1.0] * 99, 50.0)) == 1.0
    assert neighbour.p99_ms(appends(*[1.0] * 98, 50.0, 50.0)) == 50.0
    with pytest.raises(MeasurementFailed):
        neighbour.p99_ms([])


def test_the_worst_case_and_each_failure_count() -> None:
    quick = Case("bursts of 16 B", appends(1.0), appends(1.5), appends(1.1))
    slow = Case("singles of 60 B", appends(1.0), appends(2.5), appends(1.3))
    found = {each.name: (each.value, each.met) for each in neighbour.figures([quick, slow])}
    assert found == {
        "group_neighbour_p99_ratio": (2.5, False),
        "group_neighbour_failed_entries": (0, True),
        "other_group_neighbour_p99_ratio": (1.2, None),
    }
    lost = Case("bursts of 60 B", appends(1.0), appends(1.0) + appends(1.0, error="throttled"), appends(1.0))
    failed = neighbour.figures([lost])[1]
    assert (failed.value, failed.met) == (1, False)


def test_a_line_that_was_cut_off_is_no_append() -> None:
    whole = '{"at_s": 1.0, "took_ms": 2.0, "error": ""}\n'
    assert neighbour._appends('"ready"\n' + whole + whole[:-5]) == [Append(1.0, 2.0, "")]
