"""An organization's standing: active, suspended by operators, closing, or closed."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import AfterValidator, Field, StringConstraints

from quorate_api import limits
from quorate_api.http.schemas import Input, Name, Output, printable
from quorate_api.http.standing import Standing

STANDING = "suspended: by operators. closing: an owner can reopen it until `closes_at`. closed: its groups are deleted."


class OrganizationStanding(Output):
    id: UUID
    name: str
    created_at: datetime
    standing: Standing = Field(description=STANDING)
    suspended_at: datetime | None
    suspension_reason: str | None = Field(description="The operators' words; null unless it is suspended.")
    closing_at: datetime | None = Field(description="When an owner asked to close it; null: nobody has.")
    closes_at: datetime | None = Field(description="Then its groups are deleted; null: it does not close.")
    closed_at: datetime | None
    erased_after: datetime | None = Field(description="From then on people's data is erased; null unless it is closed.")


class Closure(Input):
    name: Name = Field(description="The organization's name: to show that it is this one.")


class Suspension(Input):
    reason: Annotated[
        str,
        StringConstraints(strip_whitespace=True, min_length=1, max_length=limits.SUSPENSION_REASON_LENGTH_MAX),
        AfterValidator(printable),
    ] = Field(description="For its members, who see it.")


class Tenant(Output):
    """An organization, for operators."""

    id: UUID
    name: str
    created_at: datetime
    standing: Standing = Field(description=STANDING)
    members: int
    groups: int
    rate_per_s: int = Field(description="Reserved appends per second of all groups.")
    hourly_micros: int = Field(description="The price of all reservations, in millionths of the currency.")
