"""Corrections as operators enter and see them."""

from datetime import date, datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from quorate_api import limits
from quorate_api.corrections.repository import OF_MINUTES
from quorate_api.http.schemas import Input, Output, printable

Kind = Literal["appends", "reads", "egress", "storage", "sla_minutes", "sla_durability", "sla_order"]
Reason = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=limits.CORRECTION_REASON_LENGTH_MAX),
    AfterValidator(printable),
]
Quantity = Annotated[int, Field(ge=-limits.CORRECTION_QUANTITY_MAX, le=limits.CORRECTION_QUANTITY_MAX)]


class NewCorrection(Input):
    """Either `quantity` and `day`, for a kind of use, or `start` and `end`, for the SLA."""

    kind: Kind = Field(
        description="A kind of use, or sla_minutes: minutes that are bad, whatever was measured; or sla_durability,"
        " sla_order: minutes in which that clause was breached."
    )
    quantity: Quantity | None = Field(
        None, description="Entries, or megabyte-seconds of storage, to add to the use; negative: to take off."
    )
    day: Annotated[date, Field(strict=False)] | None = Field(
        None, description="YYYY-MM-DD, in UTC: the day that was counted wrong. Its month is the month that it is about."
    )
    start: Annotated[datetime, Field(strict=False)] | None = Field(None, description="RFC 3339, a whole minute.")
    end: Annotated[datetime, Field(strict=False)] | None = Field(
        None, description="RFC 3339, a whole minute, not in the future, at most 31 days after start."
    )
    reason: Reason = Field(description="Reason for the customer. It is on documents and in SLA reports.")

    @model_validator(mode="after")
    def _says_what(self) -> "NewCorrection":
        of_use, of_minutes = (self.quantity, self.day), (self.start, self.end)
        needed, idle = (of_minutes, of_use) if self.kind in OF_MINUTES else (of_use, of_minutes)
        if None in needed or idle != (None, None):
            raise ValueError("needs start and end for the SLA, else quantity and day, and not the other two")
        if self.quantity == 0:
            raise ValueError("needs a quantity other than 0")
        return self


class Correction(Output):
    id: UUID
    kind: Kind
    quantity: int | None
    day: date | None
    start: datetime | None
    end: datetime | None
    reason: str
    author: str = Field(description="The operator's token by name. It tells nothing of the token.")
    created_at: datetime
