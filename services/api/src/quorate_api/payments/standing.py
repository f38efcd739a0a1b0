"""The standing of an invoice: a pure function of its total, its credit notes, its payment entries and the time.

An invoice is payable in whole cents. Its total is rounded once, half up, as on its document, and so is the total of
each of its credit notes. Hence all amounts here are whole cents, and nothing below a cent is ever charged or carried.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol
from uuid import UUID

from quorate_api.documents.amounts import MICROS_PER_CENT, rounded

State = Literal["open", "overdue", "paid", "written_off"]


class Entry(Protocol):
    @property
    def id(self) -> UUID: ...
    @property
    def kind(self) -> str: ...
    @property
    def amount_micros(self) -> int: ...
    @property
    def reverses_id(self) -> UUID | None: ...


@dataclass(frozen=True, slots=True)
class Owed:
    """An issued invoice. `credits`: the totals of its credit notes, negative. `due_at`: None before terms existed."""

    total_micros: int
    credits: Sequence[int]
    due_at: datetime | None


@dataclass(frozen=True, slots=True)
class Standing:
    """`due_micros` and `overpaid_micros`: one of them at least is 0."""

    state: State
    due_at: datetime | None
    payable_micros: int
    paid_micros: int
    written_off_micros: int
    due_micros: int
    overpaid_micros: int


def payable(total_micros: int) -> int:
    """A document's total as it is paid: in whole cents."""
    return rounded(total_micros) * MICROS_PER_CENT


def standing(owed: Owed, entries: Iterable[Entry], now: datetime) -> Standing:
    """Entries may come in any order. A reversed entry and its reversal cancel each other."""
    found = list(entries)
    to_pay = max(0, payable(owed.total_micros) + sum(payable(credit) for credit in owed.credits))
    paid, written_off = (_sum(found, kind) for kind in ("payment", "write_off"))
    left = to_pay - paid - written_off
    return Standing(
        state=_state(left, written_off, owed.due_at, now),
        due_at=owed.due_at,
        payable_micros=to_pay,
        paid_micros=paid,
        written_off_micros=written_off,
        due_micros=max(0, left),
        overpaid_micros=max(0, -left),
    )


def _sum(entries: list[Entry], kind: str) -> int:
    reversed_ids = {entry.reverses_id for entry in entries}
    return sum(entry.amount_micros for entry in entries if entry.kind == kind and entry.id not in reversed_ids)


def _state(left: int, written_off: int, due_at: datetime | None, now: datetime) -> State:
    if left <= 0:
        return "written_off" if written_off else "paid"
    return "overdue" if due_at is not None and now >= due_at else "open"
