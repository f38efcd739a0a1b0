"""Error budgets and burn rates against sums over every judged minute."""

import random
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate_api.outside.verdict import EVERYTHING_REACHED
from quorate_api.promises.availability import PPM
from quorate_api.sla import calculator
from quorate_api.sla.budget import Budget, Span, budget
from quorate_api.sla.minutes import Minute, judge
from quorate_api.sla.targets import AVAILABILITY, KEPT, LATENCY, THROUGHPUT, Clause
from quorate_api.telemetry.histogram import bucket_of
from quorate_api.telemetry.windows import Window
from support.customer import Customer
from support.promises import promise

START_S = 1_700_000_040  # the start of a minute
PROMISE = promise("persistent")
HOUR_MS = 3_600_000


def history(minutes: int, seed: int) -> list[Window]:
    rng = random.Random(seed)
    return [
        Window(
            "g", 1, "a", 1, START_S + minute * 60, "head",
            committed_entries=minute + 1, first_committed_entries=minute,
            active_ms=rng.choice((60_000, 60_000, 59_500, 20_000, 0)),
            throttled_within_sla_entries=rng.choice((0, 0, 0, 4)),
            latency_us={bucket_of(rng.choice((500, 500, 80_000))): 100},
        )
        for minute in range(minutes) if rng.random() < 0.9
    ]  # fmt: skip


def expected_share(minutes: list[Minute], clause: Clause, span: Span) -> Fraction | None:
    """The missed share of the minutes that begin in the span."""
    here = [minute for minute in minutes if span[0] <= minute.start_s * 1_000 < span[1]]
    if not here:
        return None
    if clause is AVAILABILITY:
        whole = sum(minute.elapsed_ms for minute in here)
        return Fraction(sum(minute.elapsed_ms - minute.active_ms for minute in here), whole)
    if clause in KEPT:
        return None  # a target of everything has no budget
    bad = [not (minute.is_unthrottled if clause is THROUGHPUT else minute.is_timely) for minute in here]
    return Fraction(sum(bad), len(here))


def check(rate: float | None, share: Fraction | None, clause: Clause) -> None:
    if share is None:
        assert rate is None
    else:
        assert rate == pytest.approx(float(share / Fraction(PPM - clause.target_ppm, PPM)), abs=0.000_6)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    minutes=st.integers(1, 400),
    late_ms=st.sampled_from((0, 1, 999, 30_000, 59_001, 59_500)),
    ends_ms=st.sampled_from((0, 400, 1_000, 31_000)),
    to_come=st.sampled_from((0, 1, 300)),
)
def test_budgets_are_sums_over_minutes(seed: int, minutes: int, late_ms: int, ends_ms: int, to_come: int) -> None:
    """A month with a beginning within a minute, and an end after so many minutes to come or within one."""
    begin_ms, settled_ms = START_S * 1_000 + late_ms, (START_S + minutes * 60) * 1_000
    whole = (begin_ms, settled_ms + to_come * 60_000 - (60_000 - ends_ms if ends_ms else 0))
    if whole[0] >= whole[1]:
        return
    windows = history(minutes, seed)
    report = calculator.report(windows, PROMISE, whole[0], min(whole[1], settled_ms), EVERYTHING_REACHED)
    judged = judge(windows, whole[0], min(whole[1], settled_ms), PROMISE.latency_us_at, EVERYTHING_REACHED).minutes
    month = judge([], *whole, PROMISE.latency_us_at, EVERYTHING_REACHED).minutes
    for clause in PROMISE.clauses:
        found = budget(report, clause, whole, settled_ms)
        amount = sum(minute.elapsed_ms for minute in month) if found.unit == "ms" else len(month)
        assert found.allowed == amount * (PPM - clause.target_ppm) // PPM
        assert found.left == found.allowed - found.used
        check(found.burn_month, expected_share(judged, clause, (0, settled_ms)), clause)
        # A first minute that has begun before the group belongs to it.
        check(found.burn_hour, expected_share(judged, clause, (settled_ms - HOUR_MS, settled_ms)), clause)
        check(found.burn_six_hours, expected_share(judged, clause, (settled_ms - 6 * HOUR_MS, settled_ms)), clause)
    assert budget(report, AVAILABILITY, whole, settled_ms).used == report.elapsed_ms - report.active_ms


def test_a_whole_month_at_a_burn_rate_of_one_uses_its_budget_up() -> None:
    month = (START_S * 1_000, START_S * 1_000 + 1_000 * 60_000)
    slow = [
        Window(
            "g", 1, "a", 1, START_S + minute * 60, "head", committed_entries=minute + 1,
            first_committed_entries=minute, active_ms=60_000,
            latency_us={bucket_of(80_000 if minute % 100 == 99 else 500): 1},
        )
        for minute in range(1_000)
    ]  # fmt: skip
    report = calculator.report(slow, PROMISE, *month, EVERYTHING_REACHED)
    assert budget(report, LATENCY, month, month[1]) == Budget("minutes", 10, 10, 1.667, 1.111, 1.0)
    assert budget(report, AVAILABILITY, month, month[1]) == Budget("ms", 30_000, 0, 0.0, 0.0, 0.0)
    # Later, hours that are over burn nothing.
    later = budget(report, LATENCY, month, month[1] + 7 * HOUR_MS)
    assert (later.burn_hour, later.burn_six_hours, later.burn_month) == (None, None, 1.0)


def test_nothing_is_counted_before_a_group_begins() -> None:
    report = calculator.report([], PROMISE, 0, 0, EVERYTHING_REACHED)
    assert budget(report, THROUGHPUT, (0, 0), HOUR_MS) == Budget("minutes", 0, 0, None, None, None)


async def test_the_report_has_each_clauses_budget(alice: Customer, owner: psycopg.Connection) -> None:
    """A group without any telemetry: its minutes are bad, and each burns its budget as fast as is possible."""
    group_id = (await alice.create_group())["id"]
    now = datetime.now(UTC)
    owner.execute("UPDATE groups SET active_at = %s", [now - timedelta(minutes=10)])
    report = await alice.get(f"/v1/groups/{group_id}/sla")
    if report["minutes_counted"] < 2:
        pytest.skip("the month begins now")
    budgets = {clause["clause"]: clause["error_budget"] for clause in report["clauses"]}
    assert budgets["availability"]["unit"] == "ms"
    assert budgets["throughput"]["used"] == report["minutes_counted"]
    assert budgets["throughput"]["left"] == budgets["throughput"]["allowed"] - report["minutes_counted"]
    assert budgets["availability"]["burn_rates"] == {"hour": 2_000.0, "six_hours": 2_000.0, "month": 2_000.0}
    assert budgets["latency"]["burn_rates"]["month"] == 100.0
