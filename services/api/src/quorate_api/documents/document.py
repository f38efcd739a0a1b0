"""An invoice or credit note as a document shows it. Pure: the renderers ask nothing else."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from uuid import UUID

from quorate_api.tax.parties import Customer, Seller
from quorate_api.tax.port import TaxLine


@dataclass(frozen=True, slots=True)
class DocumentLine:
    group_id: UUID | None  # None: the organization's
    group_name: str
    kind: str
    description: str
    quantity: int
    unit: str
    price_quantity: int
    unit_price_micros: int
    amount_micros: int


@dataclass(frozen=True, slots=True)
class Document:
    kind: str  # "invoice" or "credit_note"
    number: str | None  # None: a draft
    corrects_number: str | None
    period_start: datetime
    period_end: datetime
    issued_at: datetime | None
    due_at: datetime | None  # None: it names no day, as those from before there were due dates
    made_at: datetime  # the time of issue, so that the bytes stay the same; for a draft, now
    currency: str
    seller: Seller
    customer: Customer
    lines: Sequence[DocumentLine]
    taxes: Sequence[TaxLine]

    @property
    def is_draft(self) -> bool:
        return self.number is None

    @property
    def title(self) -> str:
        if self.is_draft:
            return f"Draft invoice, {self.period_start:%B %Y}"
        what = "Credit note" if self.kind == "credit_note" else "Invoice"
        return f"{what} {self.number}"

    @property
    def file_stem(self) -> str:
        return self.number or f"draft-{self.period_start:%Y-%m}"

    @property
    def subtotal_micros(self) -> int:
        return sum(line.amount_micros for line in self.lines)

    @property
    def tax_micros(self) -> int:
        return sum(tax.amount_micros for tax in self.taxes)

    @property
    def total_micros(self) -> int:
        return self.subtotal_micros + self.tax_micros


@dataclass(frozen=True, slots=True)
class GroupLines:
    name: str
    lines: Sequence[DocumentLine]

    @property
    def amount_micros(self) -> int:
        return sum(line.amount_micros for line in self.lines)


def by_group(lines: Iterable[DocumentLine]) -> list[GroupLines]:
    """The lines by group, in their order. Documents are written a group after the other."""
    return [
        GroupLines(name, list(some)) for (_, name), some in groupby(lines, lambda one: (one.group_id, one.group_name))
    ]
