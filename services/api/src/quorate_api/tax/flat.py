"""One rate for every line of every customer: enough for a seller who sells in one country alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from quorate_api.tax.parties import Customer, Seller
from quorate_api.tax.port import PPM, Taxable, TaxLine, part_of


@dataclass(frozen=True, slots=True)
class Flat:
    label: str
    rate_ppm: int

    def __call__(self, seller: Seller, customer: Customer, lines: Sequence[Taxable]) -> list[TaxLine]:
        base = sum(line.amount_micros for line in lines)
        return [TaxLine(self.label, self.rate_ppm, base, part_of(base, self.rate_ppm, PPM))]
