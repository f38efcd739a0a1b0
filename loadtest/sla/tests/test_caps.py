"""The arithmetic of spend caps. The run itself needs the whole stack."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from quorate_sla import caps
from quorate_sla.caps import Cost, Outcome, Sample

COST = Cost(hourly_micros=3_600, per_append_micros=0.5, per_megabyte_second_micros=0.0, began_s=0.0, month_end_s=100.0)


def spending(per_s: int, seconds: int, then_per_s: int, more_s: int) -> list[Sample]:
    """Four samples a second."""
    found, acked = [], 0
    for quarter in range(4 * (seconds + more_s) + 1):
        found.append(Sample(quarter / 4, acked, 0, False))
        acked += (per_s if quarter < 4 * seconds else then_per_s) // 4
    return found


def test_a_price_is_read_as_the_api_says_it() -> None:
    usage = [
        {"kind": "appends", "unit_price_micros": 150_000, "price_quantity": 1_000_000},
        {"kind": "storage", "unit_price_micros": 120_000, "price_quantity": 1_000 * 2_628_000},
    ]
    group = {"price": {"hourly_micros": 7, "usage": usage}, "created_at": "2026-11-01T00:00:00Z"}
    cost = Cost.of(group)
    assert cost.per_append_micros == 0.15
    end = datetime.fromtimestamp(cost.month_end_s, UTC)
    assert (end.day, end.hour) == (1, 0)
    assert timedelta(0) < end - datetime.now(UTC) <= timedelta(days=31)


def test_the_reservation_goes_on_until_the_months_end() -> None:
    assert COST.spent_micros(10, 20.0) == 25.0
    assert COST.certain_micros(10) == 105.0


def test_a_suspension_that_is_late_overshoots() -> None:
    samples = spending(4_000, 10, 0, 2)
    outcome = caps._outcome("suspend", COST, 10_100, samples)
    assert outcome.entries == 40_000
    assert outcome.overshoot == pytest.approx(20_100 / 10_100 - 1)
    assert outcome.enforced_s == pytest.approx(5.0)
    assert not all(figure.met for figure in caps.figures([outcome]))
    early = caps._outcome("suspend", COST, 20_200, samples)
    assert (early.overshoot, early.enforced_s) == (0.0, 0.0)


def test_a_throttle_is_in_force_once_no_more_than_the_reservation_passes() -> None:
    samples = spending(4_000, 10, caps.RATE_PER_S, 5)
    outcome = caps._outcome("throttle", COST, 10_005, samples)
    assert outcome.enforced_s == pytest.approx(5.0, abs=0.5)
    assert caps._calm_since(spending(4_000, 10, 4_000, 5)) is None


def test_the_worst_counts() -> None:
    good, bad = Outcome("suspend", 100, 90.0, 1, 0.0), Outcome("throttle", 100, 300.0, 1, 61.0)
    overshoot, enforced = caps.figures([good, bad])
    assert (overshoot.value, overshoot.met) == (0.0, True)
    assert (enforced.value, enforced.met) == (61.0, False)
