"""A group at a glance."""

from datetime import datetime
from uuid import UUID

from pydantic import Field

from quorate_api.http.schemas import Output


class Glance(Output):
    group_id: UUID
    appends_per_s: float = Field(description="Mean of the last whole minute.")
    bad_minutes: int = Field(
        description="Minutes of the last 24 hours that missed a clause, as far as they are judged."
    )


class Glances(Output):
    """Groups that were used, or missed a clause; others have zeros."""

    minute: datetime = Field(description="The begin of the minute.")
    items: list[Glance]
