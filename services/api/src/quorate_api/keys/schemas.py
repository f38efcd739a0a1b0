"""API keys of a project."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import Field

from quorate_api.http.schemas import Input, Name, Output

Scope = Literal["append", "read", "manage", "billing"]
DEFAULT_SCOPES: list[Scope] = ["append", "read"]


class NewKey(Input):
    name: Name
    scopes: list[Scope] = Field(
        default_factory=lambda: list(DEFAULT_SCOPES),
        min_length=1,
        max_length=8,
        description="append and read: on the logs of the project's groups. manage: quote, create, resize and delete "
        "groups, which an application does not need. billing: read the organization's invoices. Every key may look "
        "at its project.",
    )


class Key(Output):
    id: UUID
    project_id: UUID
    name: str
    prefix: str = Field(description="The first characters of the secret, to distinguish keys.")
    scopes: list[Scope]
    created_at: datetime
    last_used_at: datetime | None = Field(description="Exact to the minute; null if never used.")


class NewOrganizationKey(Input):
    name: Name


class OrganizationKey(Output):
    """A key for all of the organization's projects, for infrastructure as code."""

    id: UUID
    name: str
    prefix: str = Field(description="The first characters of the secret, to distinguish keys.")
    created_at: datetime
    last_used_at: datetime | None = Field(description="Exact to the minute; null if never used.")


class CreatedOrganizationKey(OrganizationKey):
    secret: str = Field(description="The key itself. It is shown only now.")


class CreatedKey(Key):
    secret: str = Field(description="The key itself. It is shown only now.")
