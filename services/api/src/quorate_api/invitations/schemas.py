"""Invitations into an organization."""

from datetime import datetime
from uuid import UUID

from pydantic import Field

from quorate_api.http.schemas import Input, Output
from quorate_api.members.schemas import Role
from quorate_api.users.schemas import Email, LinkSecret, NewPassword


class NewInvitation(Input):
    email: Email
    role: Role


class Invitation(Output):
    id: UUID
    email: str
    role: Role
    created_at: datetime
    expires_at: datetime


class Invitations(Output):
    items: list[Invitation]


class Link(Input):
    token: LinkSecret


class Acceptance(Input):
    token: LinkSecret
    password: NewPassword


class Invited(Output):
    """The invitation, as the holder of its link sees it."""

    organization_name: str
    email: str
    role: Role
    has_account: bool = Field(description="Whether the address has an account: log in with it, then accept.")
