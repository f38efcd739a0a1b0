"""The SLA report of a group for a month."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import Field

from quorate_api.coordinator.schemas import ObservedSla
from quorate_api.http.schemas import Output

ClauseName = Literal["availability", "throughput", "latency", "durability", "order"]


class BurnRates(Output):
    """The missed share of some time over the share that the target allows. At 1 the budget lasts for exactly the time
    in which the SLA is in force."""

    hour: float | None = Field(
        description="Rate of the last hour, as far as it is in the month; null: nothing was counted, or nothing may"
        " be missed."
    )
    six_hours: float | None = Field(description="Rate of the last six hours, likewise.")
    month: float | None = Field(description="Rate since the month's begin.")


class ErrorBudget(Output):
    """The part of a month that a clause may miss, for the time in which the SLA is in force until the month's end."""

    unit: Literal["ms", "minutes"] = Field(description="ms for availability, minutes for the other clauses.")
    allowed: int = Field(description="0 for durability and order: they may never be missed.")
    used: int
    left: int = Field(description="Below 0 once the month can meet its target no more.")
    burn_rates: BurnRates


class ClauseReport(Output):
    clause: ClauseName
    target: float = Field(description="A share: of the time for availability, of the minutes for the other clauses.")
    attained: float | None = Field(description="A share, rounded down to six digits; null if nothing was counted yet.")
    good_minutes: int
    bad_minutes: int
    met: bool
    credit_percent: int = Field(description="Credit in percent of the group's fee for the month, as of now.")
    error_budget: ErrorBudget
    target_p99_us: int | None = Field(None, description="Latency only: bound on p99 of a minute.")
    p99_us: int | None = Field(None, description="Latency only: p99 of the whole period.")
    active_ms: int | None = Field(None, description="Availability only: time in which appends were accepted.")
    elapsed_ms: int | None = Field(None, description="Availability only: time counted.")


class SlaIncident(Output):
    clause: ClauseName
    start: datetime
    end: datetime
    minutes: int
    reason: str


class SlaBreach(Output):
    clause: ClauseName
    reason: str


class SlaMinute(Output):
    """The evidence for a minute that missed a clause."""

    at: datetime = Field(description="Start of the minute.")
    missed: list[ClauseName]
    elapsed_ms: int = Field(description="Less than 60,000 where the group began or ended in it.")
    active_ms: int = Field(description="Time in which the head accepted appends; 0 in a declared minute.")
    unreachable_ms: int = Field(description="Time in which clients could not reach the head, by the word of probers.")
    measured: bool = Field(description="false: no telemetry, and the group cannot show that it had no traffic.")
    throttled_within_sla_entries: int
    within_sla_entries: int = Field(description="Entries that the reservation let pass, or should have.")
    late_read_entries: int = Field(description="Late ones of the entries that the reservation for reads let pass.")
    owed_read_entries: int = Field(description="Entries that the reservation for reads let pass, on all replicas.")
    p99_us: int | None = Field(
        description="Commit latency of these entries, from the time at which the reservation let them pass;"
        " null when none was committed."
    )
    target_p99_us: int = Field(description="The bound on p99_us in this minute.")
    declared: str | None = Field(description="Why an operator declared the minute bad; null: it was measured so.")
    breaches: list[SlaBreach] = Field(description="Breaches of durability and order, which nobody measures.")


class SlaCorrection(Output):
    """Minutes that an operator declared bad, as of an outage that telemetry did not see, or a breach."""

    start: datetime
    end: datetime
    breaches: ClauseName | None = Field(description="The clause that was breached; null: bad in what is measured.")
    reason: str
    created_at: datetime


class SlaPeriod(Output):
    start: datetime
    end: datetime
    sla: ObservedSla


class SlaReport(Output):
    group_id: UUID
    month: str
    periods: list[SlaPeriod] = Field(
        description="The SLAs in force, oldest first. Each append is judged by the SLA at its time."
    )
    minutes_counted: int
    clauses: list[ClauseReport]
    credit_percent: int = Field(description="Sum over all clauses, at most 100.")
    incidents: list[SlaIncident] = Field(description="Oldest first, at most 500.")
    corrections: list[SlaCorrection] = Field(description="Minutes of the month that were declared bad, oldest first.")
