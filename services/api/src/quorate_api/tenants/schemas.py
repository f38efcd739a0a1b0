"""One organization, as operators see and change it."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import AfterValidator, Field, StringConstraints

from quorate_api import limits
from quorate_api.http.schemas import Input, Output, printable
from quorate_api.quotas.schemas import QUOTA_MAX

Sentence = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=limits.SUSPENSION_REASON_LENGTH_MAX),
    AfterValidator(printable),
]


class NewView(Input):
    reason: Sentence = Field(description="For the audit logs; members of the organization read it in theirs.")


class View(Output):
    token: str = Field(description="`qv_…`, in the place of an API key: it sees what members see, except entries.")
    expires_at: datetime


class NewLimit(Input):
    limit: Annotated[int, Field(ge=0, le=QUOTA_MAX)]


class Decline(Input):
    reason: Sentence = Field(description="For the organization's owners, who get it by mail.")


class OpenRequest(Output):
    """A request for a greater quota."""

    organization_id: UUID
    organization_name: str
    code: str
    wanted: int
    reason: str
    asked_by: str = Field(description="The address of who asked.")
    created_at: datetime


class OpenRequests(Output):
    items: list[OpenRequest]
