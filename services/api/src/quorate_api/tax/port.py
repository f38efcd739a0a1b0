"""The port of taxes: what a provider is asked and what it answers. Pure, in integers.

A provider computes the tax of an invoice. A credit note takes its share of that tax back, by the same rounding.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from quorate_api.pricing import prices
from quorate_api.tax.parties import Customer, Seller

PPM = 1_000_000


class Taxable(Protocol):
    """A line that a provider may tax."""

    @property
    def kind(self) -> str: ...
    @property
    def amount_micros(self) -> int: ...


@dataclass(frozen=True, slots=True)
class TaxLine:
    label: str
    rate_ppm: int
    base_micros: int
    amount_micros: int


class TaxProvider(Protocol):
    def __call__(self, seller: Seller, customer: Customer, lines: Sequence[Taxable]) -> list[TaxLine]:
        """The tax of an invoice of `lines`, none of which is negative."""
        ...


def part_of(amount_micros: int, part: int, whole: int) -> int:
    """`amount_micros · part / whole`, rounded once, half up. A credit is rounded like the charge that it takes back."""
    size = prices.amount_micros(abs(amount_micros), part, whole)
    return size if amount_micros >= 0 else -size


def credited(taxes: Iterable[TaxLine], base_micros: int, credit_micros: int, credited_micros: int = 0) -> list[TaxLine]:
    """The share of an invoice's `taxes` that a credit of `credit_micros` (negative) of `base_micros` takes back.

    `credited_micros`: earlier credits of the invoice, at most 0. All credits together take back what one of their sum
    would: a credit of the whole invoice takes back its whole tax, and no credits take back more.
    """
    credited = credited_micros + credit_micros
    assert -base_micros <= credited <= credited_micros <= 0, (base_micros, credited_micros, credit_micros)
    if not base_micros:
        return []

    def share(amount_micros: int) -> int:
        return part_of(credited, amount_micros, base_micros) - part_of(credited_micros, amount_micros, base_micros)

    return [TaxLine(each.label, each.rate_ppm, share(each.base_micros), share(each.amount_micros)) for each in taxes]
