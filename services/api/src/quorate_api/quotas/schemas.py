"""Quotas with their use, and requests for greater ones."""

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from quorate_api import limits
from quorate_api.http.schemas import Input, Output, printable

CODE = "^[a-z_]{1,40}$"
QUOTA_MAX = 10**15  # exact in JSON


class Quota(Output):
    code: str
    description: str
    limit: int
    used: int
    unit: str
    is_default: bool = Field(description="Whether operators have set no other limit for the organization.")
    requested: int | None = Field(description="The limit that was asked for, and waits for an answer.")


class Quotas(Output):
    items: list[Quota]


class QuotaRequest(Input):
    wanted: Annotated[int, Field(ge=1, le=QUOTA_MAX, description="The limit that you need; above the present one.")]
    reason: Annotated[
        str,
        StringConstraints(strip_whitespace=True, min_length=1, max_length=limits.QUOTA_REASON_LENGTH_MAX),
        AfterValidator(printable),
    ] = Field(description="For the operators: the use that you plan.")
