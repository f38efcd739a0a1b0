"""Lines of invoices and credit notes, and the ledger entries that belong to them. Pure, in integers.

An invoice bills everything metered since the group began, less everything billed before. Late telemetry is therefore
billed once, in a later month.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from quorate_api.payments.books import RECEIVABLE, ROUNDING
from quorate_api.payments.standing import payable
from quorate_api.pricing import prices
from quorate_api.pricing.prices import PriceList
from quorate_api.tax.port import TaxLine

RESERVATION = "reservation"
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


@dataclass(frozen=True, slots=True)
class Line:
    group_id: UUID
    group_name: str
    kind: str
    description: str
    quantity: int
    unit: str
    price_quantity: int
    unit_price_micros: int
    amount_micros: int


def invoice_lines(
    group: BilledGroup, metered: Mapping[str, int], billed: Mapping[str, int], price_list: PriceList
) -> list[Line]:
    """`metered` and `billed` are quantities by kind since the group began. A kind without new use has no line."""
    lines = _reservation_lines(group, metered.get(RESERVATION, 0), billed.get(RESERVATION, 0))
    for price in price_list.usage:
        quantity = metered.get(price.kind, 0) - billed.get(price.kind, 0)
        if quantity <= 0:
            continue
        amount = prices.amount_micros(quantity, price.unit_price_micros, price.price_quantity)
        lines.append(
            Line(
                group.group_id, group.name, price.kind, f"{price.label}, per {price.price_quantity_label}",
                quantity, price.unit, price.price_quantity, price.unit_price_micros, amount,
            )
        )  # fmt: skip
    return lines


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


def credit_lines(lines: Iterable[Line], missed: Iterable[tuple[str, int, str]]) -> list[Line]:
    """Credits of one group for `missed` clauses: (clause, percent, attained value). They are at most its fee."""
    owned = list(lines)
    fee = sum(line.amount_micros for line in owned)
    left = fee
    credits = []
    for clause, percent, attained in missed:
        assert 0 <= percent <= 100, percent
        amount = min(left, fee * percent // 100)
        if amount <= 0:
            continue
        left -= amount
        credits.append(
            Line(
                owned[0].group_id, owned[0].group_name, SLA_CREDIT,
                f"SLA credit, {clause}: {attained}; {percent} % of this group's fee",
                percent, "percent", 100, -fee, -amount,
            )
        )  # fmt: skip
    return credits


def ledger(lines: Iterable[Line], taxes: Iterable[TaxLine] = ()) -> dict[str, int]:
    """Amounts by account, debits positive. Their sum is zero. The tax is owed to the state, and is no revenue.

    What is receivable is what is payable, in whole cents. The rest is rounding."""
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
