"""Answers to what customers ask the fleet to promise."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from quorate_api.http.schemas import Output

Outcome = Literal["admitted", "refused"]


class Admission(Output):
    id: UUID
    organization_id: UUID
    organization_name: str
    at: datetime
    operation: str = Field(description="create_group, resize_group, reset_group or put_guarantee.")
    subject: str = Field(description="The path that was called.")
    asked: Any = Field(description="The request's body.")
    outcome: Outcome
    code: str | None = Field(
        description="Code of a refusal: admission_refused, guarantee_refused, quota_exceeded or spend_cap."
    )
    reason: str | None = Field(description="Reason of a refusal by the fleet, as in `refusal` of the answer.")
    scarce_resource: str | None
    message: str | None = Field(description="The sentence that the customer saw.")


class AdmissionCount(Output):
    outcome: Outcome
    code: str | None
    reason: str | None
    scarce_resource: str | None
    count: int


class AdmissionCounts(Output):
    """By reason, the most frequent first."""

    since: datetime
    items: list[AdmissionCount]
