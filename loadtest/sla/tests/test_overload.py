"""Conclusions from reports. The measurement needs the whole stack, and is `make sla`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from quorate_harness.fleet import MeasurementFailed
from quorate_sla import overload

WITHIN, MORE = overload.HABITS[0], overload.HABITS[1]
GROUP = overload.Attacked(MORE, "persistent", "g", Path("g.json"))
JUDGED = overload.Judged(GROUP, 4, frozenset(), 0, 20.0, ())
SLOW = frozenset({("12:00", "latency")})


def test_no_bad_minute_and_no_credit_is_the_goal() -> None:
    met = {figure.name: figure.met for figure in overload.figures([JUDGED] * 15, 1)}
    assert met == {
        "sla_overload_credit": True,
        "sla_overload_bad_minutes": True,
        "sla_overload_judged_minutes": True,
        "sla_outage_minutes_seen": True,
    }
    bad = replace(JUDGED, bad=SLOW, credit_percent=10)
    values = {figure.name: (figure.value, figure.met) for figure in overload.figures([JUDGED, bad], 0)}
    assert values == {
        "sla_overload_credit": (10, False),
        "sla_overload_bad_minutes": (1, False),
        "sla_overload_judged_minutes": (8, False),
        "sla_outage_minutes_seen": (0, False),
    }


def test_what_a_group_within_its_rate_missed_too_is_the_machines() -> None:
    bad = replace(JUDGED, bad=SLOW, credit_percent=10)

    def values(within: overload.Attacked, missed: frozenset[tuple[str, str]]) -> list[float]:
        calm = replace(JUDGED, group=within, bad=missed, throttled_per_s=0.0)
        return [figure.value for figure in overload.figures([bad, calm], 1)][:2]

    within = replace(GROUP, habit=WITHIN, group_id="w")
    assert values(within, SLOW) == [0, 0]
    assert values(within, frozenset({("12:01", "latency")})) == [10, 1]
    assert values(within, frozenset({("12:00", "throughput")})) == [10, 1]
    assert values(replace(within, durability="in_memory"), SLOW) == [10, 1]


def test_an_attack_that_nobody_felt_is_no_measurement() -> None:
    overload._check_attack([JUDGED, replace(JUDGED, group=replace(GROUP, habit=WITHIN), throttled_per_s=0.0)])
    for wrong in (
        replace(JUDGED, throttled_per_s=0.0),
        replace(JUDGED, group=replace(GROUP, habit=WITHIN), throttled_per_s=1.0),
    ):
        with pytest.raises(MeasurementFailed):
            overload._check_attack([wrong])
