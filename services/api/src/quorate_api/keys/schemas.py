"""API keys: of a project for applications, of the organization for infrastructure as code."""

from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, Field, StringConstraints

from quorate_api import limits
from quorate_api.access.permissions import OF_ORGANIZATION_KEYS, OF_PROJECT_KEYS, KeyScope, Permission
from quorate_api.http.schemas import Input, Name, Output


def _of_project(text: str) -> str:
    return str(KeyScope.parse(text, OF_PROJECT_KEYS))


def _of_organization(text: str) -> str:
    return str(KeyScope.parse(text, OF_ORGANIZATION_KEYS))


ScopeText = Annotated[str, StringConstraints(min_length=1, max_length=limits.SCOPE_LENGTH_MAX)]
ProjectScope = Annotated[
    ScopeText, AfterValidator(_of_project), Field(examples=["append", "read:orders", "append:pay-*"])
]
OrganizationScope = Annotated[
    ScopeText, AfterValidator(_of_organization), Field(examples=["administer", "manage:team-*"])
]

DEFAULT_SCOPES = [str(Permission.APPEND), str(Permission.READ)]
DEFAULT_ORGANIZATION_SCOPES = sorted([str(Permission.ADMINISTER), str(Permission.MANAGE), *DEFAULT_SCOPES])

_ON_GROUPS = (
    "`append`, `read` and `manage` alone are on all groups; `append:orders` is on the group of that name, and "
    "`append:pay-*` on groups whose names begin so."
)
EXPIRY_END = datetime(2200, 1, 1, tzinfo=UTC)  # times near the year 10000 overflow in other zones
Expiry = Annotated[
    AwareDatetime,
    Field(strict=False, lt=EXPIRY_END, description="From then on the key is refused; null: it does not expire."),
]


class NewKey(Input):
    name: Name
    scopes: list[ProjectScope] = Field(
        default_factory=lambda: list(DEFAULT_SCOPES),
        min_length=1,
        max_length=limits.SCOPES_PER_KEY_MAX,
        description="append and read: on the logs of the project's groups. manage: quote, create, resize and delete "
        "groups, which an application does not need. billing: read the organization's invoices. " + _ON_GROUPS,
    )
    expires_at: Expiry | None = None


class NewOrganizationKey(Input):
    name: Name
    scopes: list[OrganizationScope] = Field(
        default_factory=lambda: list(DEFAULT_ORGANIZATION_SCOPES),
        min_length=1,
        max_length=limits.SCOPES_PER_KEY_MAX,
        description="administer: create projects, and keys of projects that do no more than this one. " + _ON_GROUPS,
    )
    expires_at: Expiry | None = None


class OrganizationKey(Output):
    """A key for all of the organization's projects, for infrastructure as code."""

    id: UUID
    name: str
    prefix: str = Field(description="The first characters of the secret, to distinguish keys.")
    scopes: list[str]
    created_at: datetime
    last_used_at: datetime | None = Field(description="Exact to the minute; null if never used.")
    expires_at: datetime | None = Field(description="null: it does not expire.")
    former_secret_until: datetime | None = Field(
        description="Until then the secret before the last rotation is accepted, too; null: it is not."
    )


class Key(OrganizationKey):
    """A key of one project, for its applications."""

    project_id: UUID


class CreatedOrganizationKey(OrganizationKey):
    secret: str = Field(description="The key itself. It is shown only now.")


class CreatedKey(Key):
    secret: str = Field(description="The key itself. It is shown only now.")


class Rotation(Input):
    grace_s: int = Field(
        limits.ROTATION_GRACE_S,
        ge=0,
        le=limits.ROTATION_GRACE_S_MAX,
        description="For so long the former secret is accepted, too. 0: it ends now, and servers refuse its tokens "
        "within seconds.",
    )


class RotatedKey(Output):
    id: UUID
    prefix: str
    secret: str = Field(description="The key's new secret. It is shown only now.")
    former_secret_until: datetime = Field(description="The end of the former secret.")
