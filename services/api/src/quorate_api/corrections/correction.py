"""Corrections that operators entered. Pure."""

from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

from quorate_api.months.calendar import day_begin, month_begin


@dataclass(frozen=True, slots=True)
class UsageCorrection:
    """A quantity that is added to a group's use of a kind, or taken from it. `is_billed`: it stands on a document."""

    id: UUID
    group_id: UUID
    kind: str
    quantity: int
    day: date
    reason: str
    is_billed: bool = False

    @property
    def begin(self) -> datetime:
        """The begin of its day."""
        return day_begin(self.day)

    @property
    def month(self) -> datetime:
        """The begin of the month that it is about."""
        return month_begin(self.begin)

    @property
    def description(self) -> str:
        """As lines of documents say it."""
        return f"Correction: {self.reason}"


@dataclass(frozen=True, slots=True)
class BadSpan:
    """Minutes in [start_s, end_s) that are bad, whatever telemetry measured."""

    start_s: int
    end_s: int
    reason: str
    breaches: str | None = None  # the clause that was not kept then; None: bad for all that telemetry measures
