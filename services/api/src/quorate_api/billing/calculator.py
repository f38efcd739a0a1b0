"""Lines of invoices and credit notes, and the ledger entries that belong to them. Pure, in integers.

An invoice bills everything metered since the group began, less everything billed before. Late telemetry is therefore
billed once, in a later month. A correction has a line of its own.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from quorate_api.commitments.calculator import Share
from quorate_api.corrections.correction import UsageCorrection
from quorate_api.guaranteed.calculator import Period
from quorate_api.payments.books import RECEIVABLE, ROUNDING
from quorate_api.payments.standing import payable
from quorate_api.pricing import prices
from quorate_api.pricing.prices import PriceList, UsagePrice
from quorate_api.tax.port import TaxLine

RESERVATION = "reservation"
COMMITMENT = "commitment"
GUARANTEE = "guarantee"
COMMITMENTS = "Commitments"  # in the place of a group's name
SLA_CREDIT = "sla_credit"
TAX_PAYABLE = "tax_payable"


@dataclass(frozen=True, slots=True)
class Reservation:
    """A reservation that a group had for a time."""

    until_s: int | None  # seconds since the group began; None: it is current
    hourly_micros: int
    words: str  # the SLA


@dataclass(frozen=True, slots=True)
class BilledGroup:
    """A group as an invoice shows it."""

    group_id: UUID
    name: str
    reservations: tuple[Reservation, ...]  # oldest first; the last one is open


class Line(NamedTuple):
    """A tuple: a large customer's bill has thousands, and they are made fast."""

    group_id: UUID | None  # None: the project's, or the organization's
    group_name: str
    kind: str
    description: str
    quantity: int
    unit: str
    price_quantity: int
    unit_price_micros: int
    amount_micros: int
    correction_id: UUID | None = None
    project_id: UUID | None = None  # the project of a line that is of no group


@dataclass(frozen=True, slots=True)
class Missed:
    """A clause of the SLA that was missed. `percent`: the credit. `attained`: in words."""

    clause: str
    percent: int
    attained: str


def invoice_lines(
    group: BilledGroup,
    metered: Mapping[str, int],
    billed: Mapping[str, int],
    price_list: PriceList,
    corrections: Sequence[UsageCorrection] = (),
) -> list[Line]:
    """`metered` and `billed` are quantities by kind since the group began. A kind without new use has no line.

    Each of the `corrections` has one, after those of its kind.
    """
    lines = _reservation_lines(group, metered.get(RESERVATION, 0), billed.get(RESERVATION, 0))
    for price in price_list.usage:
        quantity = max(0, metered.get(price.kind, 0) - billed.get(price.kind, 0))
        if quantity > 0:
            lines.append(
                Line(
                    group.group_id, group.name, price.kind, price.description,
                    quantity, price.unit, price.price_quantity, price.unit_price_micros, _worth(price, quantity),
                )
            )  # fmt: skip
        if corrections:
            of_kind = [each for each in corrections if each.kind == price.kind]
            lines += _correction_lines(group, price, quantity, of_kind)
    return lines


def _correction_lines(
    group: BilledGroup, price: UsagePrice, quantity: int, corrections: Iterable[UsageCorrection]
) -> list[Line]:
    """Each is worth what it changes of the price of the whole quantity. So all lines of a kind together cost what the
    right quantity costs, rounded once, and never less than nothing."""
    lines = []
    for each in corrections:
        before, quantity = quantity, quantity + each.quantity
        lines.append(
            Line(
                group.group_id, group.name, price.kind, each.description, each.quantity, price.unit,
                price.price_quantity, price.unit_price_micros, _worth(price, quantity) - _worth(price, before), each.id,
            )
        )  # fmt: skip
    return lines


def _worth(price: UsagePrice, quantity: int) -> int:
    return prices.amount_micros(max(0, quantity), price.unit_price_micros, price.price_quantity)


def _reservation_lines(group: BilledGroup, metered_s: int, billed_s: int) -> list[Line]:
    """One line for each price. Seconds are billed in the order in which they passed."""
    lines = []
    start_s = billed_s
    for reservation in group.reservations:
        end_s = metered_s if reservation.until_s is None else min(metered_s, reservation.until_s)
        if end_s <= start_s:
            continue
        seconds, price = end_s - start_s, reservation.hourly_micros
        lines.append(
            Line(
                group.group_id, group.name, RESERVATION, f"Reservation: {reservation.words}",
                seconds, "second", prices.HOUR_S, price, prices.amount_micros(seconds, price, prices.HOUR_S),
            )
        )  # fmt: skip
        start_s = end_s
    return lines


def commitment_line(share: Share, group_name: str | None) -> Line:
    """`group_name` None: the organization's own."""
    base_micros = share.of_micros if share.group_id is None else -share.of_micros
    return Line(
        share.group_id, COMMITMENTS if group_name is None else group_name, COMMITMENT, share.words,
        share.percent, "percent", 100, base_micros, share.amount_micros,
    )  # fmt: skip


def guarantee_line(period: Period, start: datetime, at: datetime) -> Line | None:
    """The part of a guarantee's time from `start`, the begin of a month, until `at`. None: there is none."""
    seconds, price = period.seconds(start, at), period.hourly_micros
    if seconds == 0:
        return None
    return Line(
        None, f"Project {period.project_name}", GUARANTEE, period.words, seconds, "second", prices.HOUR_S, price,
        prices.amount_micros(seconds, price, prices.HOUR_S), None, period.project_id,
    )  # fmt: skip


def credit_lines(lines: Iterable[Line], missed: Iterable[Missed]) -> list[Line]:
    """Credits of one group for `missed` clauses. They are at most its fee."""
    owned = list(lines)
    fee = sum(line.amount_micros for line in owned)
    left = fee
    credits = []
    for each in missed:
        assert 0 <= each.percent <= 100, each
        amount = min(left, fee * each.percent // 100)
        if amount <= 0:
            continue
        left -= amount
        credits.append(
            Line(
                owned[0].group_id, owned[0].group_name, SLA_CREDIT,
                f"SLA credit, {each.clause}: {each.attained}; {each.percent} % of this group's fee",
                each.percent, "percent", 100, -fee, -amount,
            )
        )  # fmt: skip
    return credits


def ledger(lines: Iterable[Line], taxes: Iterable[TaxLine] = ()) -> dict[str, int]:
    """Amounts by account, debits positive. Their sum is zero. The tax is owed to the state, and is no revenue.

    The payable amount, in whole cents, is receivable. The rest is rounding."""
    accounts: Counter[str] = Counter()
    for line in lines:
        accounts[RECEIVABLE] += line.amount_micros
        accounts["sla_credits" if line.kind == SLA_CREDIT else f"revenue:{line.kind}"] -= line.amount_micros
    for tax in taxes:
        accounts[RECEIVABLE] += tax.amount_micros
        accounts[TAX_PAYABLE] -= tax.amount_micros
    rounding = payable(accounts[RECEIVABLE]) - accounts[RECEIVABLE]
    if rounding:
        accounts[RECEIVABLE] += rounding
        accounts[ROUNDING] -= rounding
    assert sum(accounts.values()) == 0, accounts
    return dict(accounts)
