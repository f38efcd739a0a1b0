"""A group's usage and metrics per minute."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field

from quorate_api.corrections.schemas import CorrectionOfUsage
from quorate_api.http.schemas import Output


@dataclass(slots=True)
class UsageMinute:
    # A week has ten thousand, and models take ten times as long to make.
    at: Annotated[datetime, Field(description="Start of the minute.")]
    committed_entries: int
    committed_bytes: int
    read_entries: int
    read_bytes: int


class Usage(Output):
    """Committed entries are counted from the log itself: they equal the growth of its commit offset. The sums have
    corrections in them, the minutes have none."""

    group_id: UUID
    period_start: datetime
    period_end: datetime
    committed_entries: int = Field(description="Negative where corrections take off more than the period has.")
    committed_bytes: int
    read_entries: int = Field(description="Negative where corrections take off more than the period has.")
    read_bytes: int = Field(description="Negative where corrections take off more than the period has.")
    minutes: list[UsageMinute] = Field(description="Minutes without use are left out.")
    corrections: list[CorrectionOfUsage] = Field(
        description="Corrections of days that begin in the period, oldest first."
    )


class MetricsMinute(Output):
    at: datetime = Field(description="Start of the minute.")
    reserved_per_s: int
    offered_per_s: float
    committed_per_s: float
    throttled_per_s: float
    p50_us: int | None = Field(description="Commit latency; null when nothing was committed.")
    p99_us: int | None


class Metrics(Output):
    group_id: UUID
    minutes: list[MetricsMinute] = Field(description="Oldest first; minutes without telemetry are left out.")
