"""The cost of a month so far, and at its end. Pure, in integers.

Both are lines of an invoice, made by the function that makes invoices. So at the month's end the forecast is the
invoice. A group's quantities at the end are:

- reserved seconds: all until the end, or until its deletion was requested; its present price holds on;
- use of a kind: use so far + recent use · seconds left // seconds observed.

Recent use is that since the begin of the day seven days ago, or since the month's begin if that is later. Seconds
observed run from the same time, or from the group's begin, and are at least a day's. A deleted group uses no more.

The low and the high take the cheapest and the dearest of the whole days observed in the place of the rate.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from quorate_api import limits
from quorate_api.billing import account as accounts
from quorate_api.billing.account import Account, Basis
from quorate_api.billing.calculator import Line
from quorate_api.billing.sums import by_kind, total_micros
from quorate_api.months.calendar import SeenMonth
from quorate_api.pricing import prices
from quorate_api.telemetry.windows import DAY_S
from quorate_api.totals.days import NOTHING, DailyUse, Metered, Sums

DAYS_COMPARED_MIN = 2  # one day differs from nothing


class Month(SeenMonth):
    """A month with its recent days."""

    __slots__ = ()

    @property
    def since_s(self) -> int:
        """Begin of the recent days."""
        recent_s = (self.now_s // DAY_S - limits.SPEND_RECENT_DAYS) * DAY_S
        return max(int(self.start.timestamp()), recent_s)

    def observed_s(self, began: datetime | None = None) -> int:
        """Length of the recent days, for a group that began then."""
        since_s = self.since_s if began is None else max(self.since_s, int(began.timestamp()))
        return max(limits.SPEND_OBSERVED_S_MIN, self.now_s - since_s)

    @property
    def whole_days_s(self) -> range:
        """Begins of the recent days that are over."""
        return range(self.since_s, self.now_s // DAY_S * DAY_S, DAY_S)


@dataclass(frozen=True, slots=True)
class Forecast:
    """`spent`: the open invoice's lines. `expected`: the lines at the month's end."""

    spent: list[Line]
    expected: list[Line]


@dataclass(frozen=True, slots=True)
class Spread:
    """How the recent days differ. With fewer than two whole days, low and high are what is expected."""

    low_micros: int
    high_micros: int
    whole_days: int


def forecast(account: Account, used: DailyUse, month: Month) -> Forecast:
    """`used` has each day of the month."""
    basis = accounts.open_basis(account, used, month.start)
    total = used.before(None)
    spent = accounts.lines_of(account, month.start, month.now, total, basis)
    at_end = _at_end(account.groups, total, used.before(month.since_s), month)
    return Forecast(spent, accounts.lines_of(account, month.start, month.end, at_end, basis))


def spread(account: Account, used: DailyUse, month: Month, expected_micros: int) -> Spread:
    """The low and the high of a forecast."""
    costs = _usage_by_day(account.groups, used, month)
    if len(costs) < DAYS_COMPARED_MIN:
        return Spread(expected_micros, expected_micros, len(costs))
    basis = accounts.open_basis(account, used, month.start)
    # Reservations until the end, and no more usage.
    certain_micros = total_micros(accounts.lines_of(account, month.start, month.end, used.before(None), basis))
    low_micros = min(expected_micros, certain_micros + min(costs) * month.left_s // DAY_S)
    high_micros = max(expected_micros, certain_micros + max(costs) * month.left_s // DAY_S)
    return Spread(low_micros, high_micros, len(costs))


def _at_end(groups: Iterable[Row[Any]], total: Metered, earlier: Metered, month: Month) -> Metered:
    found: dict[UUID, Sums] = {}
    for group in groups:
        so_far = total.get(group.id)
        if so_far is None:
            continue
        if group.delete_requested_at is not None:
            found[group.id] = so_far
            continue
        observed_s = month.observed_s(group.active_at)
        before = earlier.get(group.id, NOTHING)
        found[group.id] = Sums(
            *(now + (now - then) * month.left_s // observed_s for now, then in zip(so_far, before, strict=True))
        )
    return found


def _usage_by_day(groups: Iterable[Row[Any]], used: DailyUse, month: Month) -> list[int]:
    """The cost of usage on each whole day, of groups that go on."""
    going_on = {group.id for group in groups if group.delete_requested_at is None}
    price_list = prices.at(month.start)

    def sums(day_s: int) -> Sums:
        total = NOTHING
        for group_id, amounts in used.before(day_s).items():
            total = total.plus(amounts) if group_id in going_on else total
        return total

    found = []
    for day_s in month.whole_days_s:
        before, after = sums(day_s), sums(day_s + DAY_S)
        quantities = {kind: now - then for kind, now, then in zip(prices.KINDS, after, before, strict=True)}
        found.append(
            sum(
                prices.amount_micros(quantities[price.kind], price.unit_price_micros, price.price_quantity)
                for price in price_list.usage
            )
        )
    return found


def days(account: Account, used: DailyUse, month: Month, basis: Basis) -> list[dict[str, int]]:
    """The cost of each day of the month until now, by kind. Together they are what the month costs until now.

    A day costs what the lines at its end have more than those at its begin, so that no rounding is lost. Usage that
    arrived too late for an earlier invoice is in the first day. A correction is in the day that it is about.
    """
    found: list[dict[str, int]] = []
    had: dict[str, int] = {}
    for day_s in range(int(month.start.timestamp()), min(int(month.end.timestamp()), month.now_s + 1), DAY_S):
        end = datetime.fromtimestamp(day_s + DAY_S, month.start.tzinfo)
        is_last = end > month.now
        metered = used.before(None if is_last else day_s + DAY_S)
        lines = accounts.lines_of(account, month.start, month.now if is_last else end, metered, basis)
        has = by_kind(lines)
        found.append({kind: amount - had.get(kind, 0) for kind, amount in has.items()})
        had = has
    return found
