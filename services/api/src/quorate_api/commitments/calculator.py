"""Commitments of an organization in a month. Pure, in integers.

A commitment is an amount of reservations a month, at list prices. Reservations up to it cost so many percent less. The
rest of it is owed all the same, at the same discount.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from quorate_api.documents.amounts import plain_text
from quorate_api.pricing import prices

PERCENT = 100


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


@dataclass(frozen=True, slots=True)
class Share:
    """Percent of an amount. `group_id`: of a group's reservation, which costs less by it; None: of what nobody took,
    which is owed."""

    group_id: UUID | None
    words: str
    percent: int
    of_micros: int

    @property
    def amount_micros(self) -> int:
        """Below 0 for a discount."""
        sign = 1 if self.group_id is None else -1
        return sign * prices.amount_micros(self.percent, self.of_micros, PERCENT)


def shares(
    commitments: Iterable[Commitment], month: datetime, part: tuple[int, int], reserved: Mapping[UUID, int]
) -> list[Share]:
    """Discounts of groups, and the rest of each commitment.

    `part`: how much of the month is billed, as numerator and denominator. `reserved`: the cost of each group's
    reservations. The commitment with the highest discount comes first.
    """
    held = [each for each in commitments if each.holds(month)]
    held.sort(key=lambda each: (-each.discount_percent, each.id))
    left = sum(reserved.values())
    found: list[Share] = []
    for each in held:
        committed = each.monthly_micros * part[0] // part[1]
        covered = min(committed, left)
        found += _discounts(each, reserved, covered)
        if committed > covered:
            percent = PERCENT - each.discount_percent
            words = f"{each.words}: not reserved, {each.discount_percent} % off"
            found.append(Share(None, words, percent, committed - covered))
        left -= covered
    return found


def _discounts(commitment: Commitment, reserved: Mapping[UUID, int], covered: int) -> Iterator[Share]:
    """Each group's share of the covered amount is as large as its share of all reservations. Shares add up."""
    total, reached = sum(reserved.values()), 0
    for group_id, amount in reserved.items():
        before, reached = reached, reached + amount
        share = covered * reached // total - covered * before // total if total else 0
        if share > 0:
            percent = commitment.discount_percent
            yield Share(group_id, f"{commitment.words}: {percent} % off this part of the reservation", percent, share)
