"""Corrections as customers see them."""

from datetime import date, datetime
from typing import Literal
from uuid import UUID

from pydantic import Field

from quorate_api.http.schemas import Output

UsageKind = Literal["appends", "reads", "egress", "storage"]


class CorrectionOfUsage(Output):
    """A quantity that was added to what was counted, or taken from it."""

    id: UUID
    kind: UsageKind
    quantity: int = Field(description="Entries, or megabyte-seconds of storage; negative: taken off.")
    day: date
    reason: str
    created_at: datetime
