"""Lines of commitments on an invoice. Pure, in integers.

A commitment is an amount of reservations a month, at list prices. Reservations up to it cost so many percent less. What
is not reserved of it is owed all the same, at the same discount.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from quorate_api.billing.calculator import COMMITMENT, RESERVATION, Line
from quorate_api.documents.amounts import plain_text
from quorate_api.pricing import prices

PERCENT = 100
TITLE = "Commitments"


@dataclass(frozen=True, slots=True)
class Commitment:
    """It holds in the months from `start` until `end`, both begins of months."""

    id: UUID
    monthly_micros: int
    months: int
    discount_percent: int
    start: datetime
    end: datetime

    def holds(self, month: datetime) -> bool:
        return self.start <= month < self.end

    @property
    def words(self) -> str:
        amount = plain_text(self.monthly_micros)
        return f"Commitment to {amount} {prices.CURRENCY} a month until {self.end:%Y-%m-%d}"


def lines(
    commitments: Iterable[Commitment], month: datetime, part: tuple[int, int], reserved: Sequence[Line]
) -> list[Line]:
    """Discounts of groups, and what is not reserved.

    `part`: how much of the month is billed, as numerator and denominator. `reserved`: its lines of reservations. The
    commitment with the highest discount comes first.
    """
    held = sorted(
        (each for each in commitments if each.holds(month)), key=lambda each: (-each.discount_percent, each.id)
    )
    groups = _by_group(reserved)
    total = sum(amount for _, amount in groups.values())
    found: list[Line] = []
    done = 0
    for each in held:
        committed = each.monthly_micros * part[0] // part[1]
        covered = min(committed, total - done)
        found += _discounts(each, groups, total, covered)
        if committed > covered:
            found.append(_unused(each, committed - covered))
        done += covered
    return found


def _by_group(reserved: Iterable[Line]) -> dict[UUID, tuple[str, int]]:
    """Name and amount of each group, in the order of the lines."""
    found: dict[UUID, tuple[str, int]] = {}
    for line in reserved:
        assert line.kind == RESERVATION, line
        assert line.group_id is not None, "a reservation is a group's"
        found[line.group_id] = (line.group_name, found.get(line.group_id, ("", 0))[1] + line.amount_micros)
    return found


def _discounts(commitment: Commitment, groups: dict[UUID, tuple[str, int]], total: int, covered: int) -> Iterable[Line]:
    """Each group's share of the covered amount is as large as its share of all reservations. Shares add up."""
    reached = 0
    for group_id, (name, amount) in groups.items():
        before, reached = reached, reached + amount
        share = covered * reached // total - covered * before // total if total else 0
        if share > 0:
            percent = commitment.discount_percent
            discount = prices.amount_micros(percent, share, PERCENT)
            words = f"{commitment.words}: {percent} % off this part of the reservation"
            yield Line(group_id, name, COMMITMENT, words, percent, "percent", PERCENT, -share, -discount)


def _unused(commitment: Commitment, amount: int) -> Line:
    left_percent = PERCENT - commitment.discount_percent
    owed = prices.amount_micros(left_percent, amount, PERCENT)
    words = f"{commitment.words}: not reserved, {commitment.discount_percent} % off"
    return Line(None, TITLE, COMMITMENT, words, left_percent, "percent", PERCENT, amount, owed)
