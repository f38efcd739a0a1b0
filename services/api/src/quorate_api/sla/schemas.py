"""The SLA report of a group for a month."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import Field

from quorate_api.coordinator.schemas import ObservedSla
from quorate_api.http.schemas import Output

ClauseName = Literal["availability", "throughput", "latency"]


class ClauseReport(Output):
    clause: ClauseName
    target: float = Field(description="Share: availability of the time, throughput and latency of the minutes.")
    attained: float | None = Field(description="Share, rounded down to six digits; null if nothing was counted yet.")
    good_minutes: int
    bad_minutes: int
    met: bool
    credit_percent: int = Field(description="Of the group's fee for the month, as it stands.")
    target_p99_us: int | None = Field(None, description="Latency only: what p99 of a minute must stay within.")
    p99_us: int | None = Field(None, description="Latency only: p99 of the whole period.")
    active_ms: int | None = Field(None, description="Availability only: time in which appends were accepted.")
    elapsed_ms: int | None = Field(None, description="Availability only: time counted.")


class SlaIncident(Output):
    clause: ClauseName
    start: datetime
    end: datetime
    minutes: int
    reason: str


class SlaPeriod(Output):
    start: datetime
    end: datetime
    sla: ObservedSla


class SlaReport(Output):
    group_id: UUID
    month: str
    periods: list[SlaPeriod] = Field(
        description="What was promised, oldest first: each append is judged by what was promised at its time."
    )
    minutes_counted: int
    clauses: list[ClauseReport]
    credit_percent: int = Field(description="Of all clauses together, at most 100.")
    incidents: list[SlaIncident] = Field(description="Oldest first, at most 500.")
