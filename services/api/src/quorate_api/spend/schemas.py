"""The cost of this month so far and by its end, and of each day."""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Literal
from uuid import UUID

from pydantic import Field

from quorate_api.http.schemas import Output

MONTH = "YYYY-MM, in UTC."


class KindMicros(Output):
    """An amount by kind. Credits are not in it: they are known at the month's close."""

    reservation: int
    appends: int
    reads: int
    egress: int
    storage: int
    guarantee: int = Field(description="Shared tokens of projects' guarantees.")
    commitment: int = Field(description="Discounts, negative, and what was committed to and is not reserved.")

    @classmethod
    def of(cls, amounts: Mapping[str, int]) -> "KindMicros":
        """Kinds that are not in `amounts` cost nothing."""
        return cls(**{kind: amounts.get(kind, 0) for kind in cls.model_fields})


class ForecastBasis(Output):
    """The basis of the forecast. Reservations are known; usage goes on at the rate of the recent days."""

    observed_from: datetime = Field(description="Begin of the recent days: seven days ago, or the month's begin.")
    observed_s: int = Field(description="Seconds from there until now, at least a day's.")
    whole_days: int = Field(description="Recent days that are over. From two on, low and high tell how they differ.")
    left_s: int = Field(description="Seconds until the month's end.")


class SpendForecast(Output):
    """The invoice at the month's end, if groups stay as they are and usage goes on as in the recent days."""

    total_micros: int
    low_micros: int = Field(description="If each day to come uses what the cheapest of the whole days did.")
    high_micros: int = Field(description="If each day to come uses what the dearest of the whole days did.")
    by_kind: KindMicros
    basis: ForecastBasis


class PreviousMonth(Output):
    month: str = Field(description=MONTH)
    total_micros: int
    by_kind: KindMicros
    status: Literal["open", "issued"] = Field(description="open: its invoice is not issued yet, and may have more.")
    invoice_id: UUID | None


class ProjectSpend(Output):
    project_id: UUID
    project_name: str
    spent_micros: int
    forecast_micros: int
    previous_micros: int = Field(description="In the month before.")


class GroupSpend(Output):
    group_id: UUID
    group_name: str
    project_id: UUID
    spent_micros: int
    by_kind: KindMicros
    forecast_micros: int
    previous_micros: int = Field(description="In the month before.")


class OtherGroups(Output):
    """The sum of groups that are left out of the list."""

    groups: int
    spent_micros: int
    forecast_micros: int
    previous_micros: int


class Spend(Output):
    """Amounts are without tax. `spent_micros` is the subtotal of the open invoice."""

    month: str = Field(description=MONTH)
    period_start: datetime
    period_end: datetime
    as_of: datetime
    currency: str
    spent_micros: int
    by_kind: KindMicros
    forecast: SpendForecast
    previous: PreviousMonth | None = Field(description="null if the organization owed nothing in the month before.")
    projects: list[ProjectSpend] = Field(description="The dearest forecast first.")
    groups: list[GroupSpend] = Field(description="The dearest forecast first, at most 1000.")
    other_groups: OtherGroups


class SpendDay(Output):
    day: date
    total_micros: int
    by_kind: KindMicros


class SpendDays(Output):
    """The days of a month until now, oldest first. This month's add up to its `spent_micros`."""

    month: str = Field(description=MONTH)
    currency: str
    days: list[SpendDay] = Field(description="At most 31.")
