"""The public status, and incidents as operators open and update them."""

from datetime import date, datetime
from typing import Annotated
from uuid import UUID

from pydantic import AfterValidator, Field, StringConstraints

from quorate_api import limits
from quorate_api.http.schemas import Input, Name, Output
from quorate_api.status.incidents import Impact, Phase
from quorate_api.status.rules import Component, State


def _readable(value: str) -> str:
    if not value.replace("\n", "").isprintable():
        raise ValueError("must not contain control characters other than line breaks")
    return value


def _once(values: list[str]) -> list[str]:
    if len(set(values)) != len(values):
        raise ValueError("must name each once")
    return values


Message = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=limits.STATUS_MESSAGE_LENGTH_MAX),
    AfterValidator(_readable),
]
Region = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]


class StatusDay(Output):
    day: date = Field(description="In UTC.")
    state: State
    good: float | None = Field(description="Share of its measured minutes that were good; null: none was measured.")


class StatusComponent(Output):
    component: Component
    state: State = Field(description="Now, by measurements. unknown: nothing was measured, which may be good or bad.")
    detail: str
    good_24h: float | None = Field(description="Share of good minutes of the last 24 hours.")
    good_90d: float | None
    days: list[StatusDay] = Field(description="The last 90 days until today, oldest first.")


class StatusRegion(Output):
    region: str
    state: State
    components: list[StatusComponent]


class IncidentUpdate(Output):
    id: UUID
    at: datetime
    phase: Phase
    impact: Impact
    message: str


class Incident(Output):
    id: UUID
    title: str
    regions: list[str]
    components: list[Component]
    impact: Impact = Field(description="As of the newest update.")
    phase: Phase
    opened_at: datetime
    resolved_at: datetime | None = Field(description="null: it is open.")
    updates: list[IncidentUpdate] = Field(description="Newest first, at most 200.")


class Status(Output):
    at: datetime = Field(description="Time at which the measurements were read.")
    state: State = Field(description="The worst of all components, by measurements alone.")
    regions: list[StatusRegion]
    incidents: list[Incident] = Field(
        description="Open ones, then those of the last 90 days; both newest first. At most 100."
    )


class NewIncident(Input):
    title: Name
    regions: Annotated[list[Region], Field(min_length=1, max_length=100), AfterValidator(_once)] | None = Field(
        None, description="null: every region."
    )
    components: Annotated[list[Component], Field(min_length=1, max_length=10), AfterValidator(_once)]
    impact: Impact
    phase: Phase = "investigating"
    message: Message


class NewUpdate(Input):
    phase: Phase = Field(description="resolved ends the incident; any other opens it again.")
    impact: Impact | None = Field(None, description="null: as before.")
    message: Message
