"""The forecast of a month: by examples, and the invoice at the month's end."""

import uuid
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from quorate_api.billing import account as accounts
from quorate_api.billing.account import Account
from quorate_api.billing.sums import total_micros
from quorate_api.spend.forecast import Month, days, forecast, spread
from quorate_api.telemetry.windows import DAY_S
from quorate_api.totals.days import DailyUse, Sums

START, END = datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)
START_S = int(START.timestamp())
MILLION = 1_000_000
MILLION_MICROS = 150_000  # the price of a million appends
SECOND_MICROS = 1_000
MONTH_MICROS = 30 * DAY_S * SECOND_MICROS
GROUP = uuid.UUID(int=1)
ORGANIZATION = uuid.UUID(int=9)
SLA = {"durability": "persistent", "rate_per_s": 1, "request_size_bytes": 1, "replication_degree": 3}


def group(began: datetime = START, deleted: datetime | None = None, number: int = 1) -> Any:
    return SimpleNamespace(
        id=uuid.UUID(int=number), organization_id=ORGANIZATION, project_id=uuid.UUID(int=5), name="orders", sla=SLA,
        hourly_micros=SECOND_MICROS * 3_600, active_at=began, delete_requested_at=deleted,
    )  # fmt: skip


def account(*groups: Any, former: Any = None) -> Account:
    return Account(list(groups), former or {}, {}, {})


def appended(per_day: dict[int, int]) -> DailyUse:
    """Millions of appends on days of the month, from 0."""
    return DailyUse.of(
        (GROUP, START_S + day * DAY_S, Sums(count * MILLION, 0, 0, 0)) for day, count in sorted(per_day.items())
    )


def expected_micros(owed: Account, used: DailyUse, now: datetime) -> int:
    return total_micros(forecast(owed, used, Month(START, END, now)).expected)


def test_usage_goes_on_at_the_rate_of_the_last_week() -> None:
    now = START + timedelta(days=10)
    used = appended(dict.fromkeys(range(3), 5) | dict.fromkeys(range(3, 10), 1))
    month = Month(START, END, now)
    assert month.observed_s() == 7 * DAY_S
    assert expected_micros(account(group()), used, now) == MONTH_MICROS + (15 + 7 + 20) * MILLION_MICROS


def test_the_month_is_shorter_than_a_week_at_first() -> None:
    now = START + timedelta(days=3)
    used = appended({0: 1, 1: 2, 2: 3})
    assert Month(START, END, now).observed_s() == 3 * DAY_S
    assert expected_micros(account(group()), used, now) == MONTH_MICROS + (6 + 6 * 27 // 3) * MILLION_MICROS


def test_the_first_hours_are_spread_over_a_day() -> None:
    now = START + timedelta(hours=1)
    left_s = 30 * DAY_S - 3_600
    used = appended({0: 1})
    appends = MILLION + MILLION * left_s // DAY_S
    usage = (2 * appends * MILLION_MICROS + MILLION) // (2 * MILLION)
    assert expected_micros(account(group()), used, now) == MONTH_MICROS + usage


def test_a_young_group_is_measured_by_its_own_life() -> None:
    now = START + timedelta(days=10)
    young = group(began=now - timedelta(days=2))
    used = appended({8: 1, 9: 1})
    assert expected_micros(account(young), used, now) == (22 * DAY_S * SECOND_MICROS) + 22 * MILLION_MICROS


def test_a_deleted_group_costs_no_more() -> None:
    now = START + timedelta(days=10)
    gone = group(deleted=START + timedelta(days=9))
    used = appended(dict.fromkeys(range(9), 1))
    month = Month(START, END, now)
    seen = forecast(account(gone), used, month)
    assert seen.spent == seen.expected
    assert total_micros(seen.spent) == 9 * (DAY_S * SECOND_MICROS + MILLION_MICROS)
    assert spread(account(gone), used, month, total_micros(seen.expected)).high_micros == total_micros(seen.expected)


def test_low_and_high_are_the_cheapest_and_the_dearest_day() -> None:
    now = START + timedelta(days=10)
    used = appended({day: day for day in range(10)})
    month = Month(START, END, now)
    expected = expected_micros(account(group()), used, now)
    assert expected == MONTH_MICROS + (45 + (3 + 4 + 5 + 6 + 7 + 8 + 9) * 20 // 7) * MILLION_MICROS
    found = spread(account(group()), used, month, expected)
    assert (found.low_micros, found.high_micros, found.whole_days) == (
        MONTH_MICROS + (45 + 3 * 20) * MILLION_MICROS, MONTH_MICROS + (45 + 9 * 20) * MILLION_MICROS, 7,
    )  # fmt: skip


def test_one_day_has_nothing_to_differ_from() -> None:
    now = START + timedelta(days=1, hours=5)
    used = appended({0: 3})
    expected = expected_micros(account(group()), used, now)
    found = spread(account(group()), used, Month(START, END, now), expected)
    assert (found.low_micros, found.high_micros, found.whole_days) == (expected, expected, 1)


def test_what_earlier_months_used_is_in_no_figure() -> None:
    now = START + timedelta(days=10)
    old = group(began=START - timedelta(days=20))
    used = DailyUse.of(
        [(GROUP, START_S - DAY_S, Sums(70 * MILLION, 5, 5, 5)), (GROUP, START_S, Sums(7 * MILLION, 0, 0, 0))]
    )
    assert expected_micros(account(old), used, now) == MONTH_MICROS + 7 * MILLION_MICROS


COUNTS = st.integers(0, 1 << 40)
USES = st.lists(st.tuples(st.integers(1, 3), st.integers(-1, 29), COUNTS, COUNTS, COUNTS, COUNTS), max_size=40)
BEGINS = st.lists(st.integers(-20 * DAY_S, 29 * DAY_S), min_size=3, max_size=3)


@given(USES, BEGINS, st.integers(0, 30 * DAY_S), st.integers(0, 30 * DAY_S), st.integers(0, 1 << 40))
def test_what_holds_at_every_time_and_the_invoice_at_the_end(
    uses: list[tuple[int, int, int, int, int, int]], begins: list[int], now_s: int, resized_s: int, hourly_micros: int
) -> None:
    now = START + timedelta(seconds=now_s)
    groups = [
        group(START + timedelta(seconds=begin_s), END if number == 2 else None, number)
        for number, begin_s in enumerate(begins, 1)
        if begin_s <= now_s
    ]
    resized = SimpleNamespace(
        revision=1, sla=SLA, hourly_micros=hourly_micros, until=START + timedelta(seconds=max(begins[0], resized_s))
    )
    owed = account(*groups, former={uuid.UUID(int=1): [resized]})
    rows = [
        (uuid.UUID(int=number), START_S + day * DAY_S, Sums(*counts))
        for number, day, *counts in uses
        if day * DAY_S <= now_s
    ]
    used = DailyUse.of(sorted(rows))
    month = Month(START, END, now)
    seen = forecast(owed, used, month)
    spent, expected = total_micros(seen.spent), total_micros(seen.expected)
    assert seen.spent == accounts.open_lines(owed, used, START, now)
    assert 0 <= spent <= expected
    found = spread(owed, used, month, expected)
    assert found.low_micros <= expected <= found.high_micros
    by_day = days(owed, used, month, accounts.open_basis(owed, used, START))
    assert sum(sum(kinds.values()) for kinds in by_day) == spent
    assert all(amount >= 0 for kinds in by_day for amount in kinds.values())
    assert len(by_day) <= 31
    at_end = Month(START, END, END)
    invoice = accounts.lines_of(owed, START, END, used.before(None), accounts.open_basis(owed, used, START))
    assert forecast(owed, used, at_end).expected == invoice
    at_end_found = spread(owed, used, at_end, total_micros(invoice))
    assert at_end_found.low_micros == at_end_found.high_micros == total_micros(invoice)
