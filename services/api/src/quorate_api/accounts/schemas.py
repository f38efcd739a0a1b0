"""People, their organization, their session."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import AfterValidator, EmailStr, Field, StringConstraints

from quorate_api import limits
from quorate_api.http.schemas import Input, Name, Output
from quorate_api.projects.schemas import Project


def _no_nul(value: str) -> str:
    if "\0" in value:
        raise ValueError("must not contain the character NUL")
    return value


Email = Annotated[EmailStr, AfterValidator(str.lower), Field(max_length=254)]
NewPassword = Annotated[
    str,
    StringConstraints(min_length=limits.PASSWORD_LENGTH_MIN, max_length=limits.PASSWORD_LENGTH_MAX),
    AfterValidator(_no_nul),
    Field(json_schema_extra={"format": "password"}),
]
Password = Annotated[
    str,
    StringConstraints(min_length=1, max_length=limits.PASSWORD_LENGTH_MAX),
    Field(json_schema_extra={"format": "password"}),
]


class SignUp(Input):
    email: Email
    password: NewPassword = Field(description=f"At least {limits.PASSWORD_LENGTH_MIN} characters, of any kind.")
    organization: Name


class Login(Input):
    email: Email
    password: Password


class User(Output):
    id: UUID
    email: str
    created_at: datetime


class Organization(Output):
    id: UUID
    name: str
    created_at: datetime


class SignedUp(Output):
    user: User
    organization: Organization
    project: Project = Field(description="The first project, called `default`.")
    csrf_token: str = Field(description="Send it as X-CSRF-Token with every change made through the session cookie.")


class Me(Output):
    user: User | None = Field(description="null for an API key.")
    organization: Organization
    role: str | None = Field(description="owner, admin, developer, billing or viewer; null for an API key.")
    permissions: list[str]
    projects: list[Project] = Field(description="Newest first, at most 200.")
    csrf_token: str | None = Field(description="null for an API key.")
