"""The audit log as the API shows it."""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from quorate_api.http.schemas import Output


class Actor(Output):
    kind: Literal["person", "key", "operator"]
    id: str
    name: str = Field(description="A person's e-mail address, a key's name, or an operator of the service.")
    credential: str | None = Field(description="The session, or the secret of the key.")


class AuditEvent(Output):
    seq: int = Field(description="From 1, without gaps.")
    at: datetime
    operation: str = Field(description="The call of the contract (`operationId`).")
    subject: str = Field(description="The address that was called.")
    actor: Actor
    address: str = Field(description="The caller's network address.")
    user_agent: str
    request_id: str
    request: Any = Field(description="The body, without secrets; a long one as text, cut; null without a body.")
    created_id: str | None = Field(description="The id of what the call has made; null if it made nothing.")
    hash: str = Field(description="SHA-256 of the hash before it and of this event's text in the export, hexadecimal.")
