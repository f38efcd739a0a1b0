"""Operators as persons: their sessions, and what they did."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from quorate_api import limits
from quorate_api.http.schemas import Input, Output
from quorate_api.security.operator_sessions import NAME


class NewOperatorSession(Input):
    name: Annotated[str, StringConstraints(pattern=f"^{NAME.pattern}$")] = Field(
        description="The operator's name, for the operators' audit log.", examples=["ada@example.com"]
    )
    ttl_s: int = Field(
        limits.OPERATOR_SESSION_S, ge=60, le=limits.OPERATOR_SESSION_S_MAX, description="It ends after so long."
    )


class NamedOperator(Output):
    name: str
    expires_at: datetime | None = Field(description="null: a long-lived token from the file.")


class CreatedOperatorSession(Output):
    token: str = Field(description="`qos_…`. It is shown only now, and cannot be revoked: keep it short.")
    name: str
    expires_at: datetime


class OperatorEvent(Output):
    seq: int = Field(description="From 1, without gaps.")
    at: datetime
    operation: str = Field(description="The call of the contract (`operationId`).")
    subject: str = Field(description="The address that was called.")
    operator: str
    session: str | None = Field(description="null: a long-lived token from the file.")
    address: str = Field(description="The operator's network address.")
    request_id: str
    request: Any = Field(description="The body, without secrets; a long one as text, cut; null without a body.")
    hash: str = Field(description="SHA-256 of the hash before it and of this event's text in the export, hexadecimal.")
