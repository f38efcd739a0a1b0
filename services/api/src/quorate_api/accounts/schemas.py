"""People, their organizations, their session."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from quorate_api.factors.schemas import Code
from quorate_api.http.schemas import Input, Name, Output
from quorate_api.http.standing import Standing
from quorate_api.identities.schemas import ProviderAnswer
from quorate_api.projects.schemas import Project
from quorate_api.users.schemas import Email, NewPassword, Password


class SignUp(Input):
    email: Email
    password: NewPassword
    organization: Name


class Login(Input):
    email: Email
    password: Password
    code: Code | None = Field(None, description="Where the account has a second factor; 401 without it says so.")


class ProviderLogin(ProviderAnswer):
    second_factor: Code | None = Field(None, description="Where the outcome before was `second_factor_required`.")


class ProviderSignUp(Input):
    """With the identity that the provider has just told."""

    organization: Name


class ChosenOrganization(Input):
    organization_id: Annotated[UUID, Field(strict=False)]


class User(Output):
    id: UUID
    email: str
    created_at: datetime
    email_verified: bool = Field(description="Whether the person has shown that the address is theirs.")


class Organization(Output):
    id: UUID
    name: str
    created_at: datetime
    standing: Standing = Field(
        description="Unless it is active, little can be changed; `GET /v1/organization` says more."
    )


class Membership(Output):
    organization_id: UUID
    organization_name: str
    role: str


class SignedUp(Output):
    user: User
    organization: Organization
    project: Project = Field(description="The first project, called `default`.")
    csrf_token: str = Field(description="Send it as X-CSRF-Token with every change made through the session cookie.")


class Me(Output):
    user: User | None = Field(description="null for an API key.")
    organization: Organization
    role: str | None = Field(description="owner, admin, developer, billing or viewer; null for an API key.")
    permissions: list[str] = Field(
        description="append, read, manage, billing, view, team, administer, own; of an API key also its scopes by name."
    )
    memberships: list[Membership] = Field(description="The person's organizations, this one among them.")
    projects: list[Project] = Field(description="Newest first, at most 200.")
    csrf_token: str | None = Field(description="null for an API key.")
    viewed_by: str | None = Field(description="The operator who looks at the organization, and changes nothing.")


Outcome = Literal["logged_in", "second_factor_required", "account_needed", "account_exists"]


class ProviderLoginOutcome(Output):
    outcome: Outcome = Field(
        description="`second_factor_required`: the account has one, so repeat with it. `account_needed`: nobody has "
        "the identity, so sign up with it. `account_exists`: nobody has it, and its address has an account: log in to "
        "that another way, and connect the identity."
    )
    email: str = Field(description="The person's address, as the provider tells it.")
    me: Me | None = Field(description="Where the outcome is `logged_in`.")
