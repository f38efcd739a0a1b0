"""Commitments, and what can be committed to."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field

from quorate_api import limits
from quorate_api.http.schemas import Input, Output


class Offer(Output):
    months: int
    discount_percent: int


class NewCommitment(Input):
    monthly_micros: Annotated[int, Field(ge=limits.COMMITMENT_MICROS_MIN, le=limits.COMMITMENT_MICROS_MAX)] = Field(
        description="Reservations a month, at list prices. They are owed whether they are used or not, less the "
        "discount.",
    )
    months: int = Field(description="One of the offers' terms.")


class Commitment(Output):
    id: UUID
    monthly_micros: int
    months: int
    discount_percent: int
    start: datetime = Field(description="The begin of the month after it was made.")
    end: datetime
    created_at: datetime


class Commitments(Output):
    items: list[Commitment] = Field(description="Newest first, those that have ended included.")
    offers: list[Offer]
    currency: str
    reserved_monthly_micros: int = Field(description="The monthly cost of the reservations of groups that exist now.")
