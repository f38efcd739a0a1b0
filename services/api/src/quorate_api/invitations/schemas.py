"""Invitations into an organization."""

from datetime import datetime
from uuid import UUID

from pydantic import Field, model_validator

from quorate_api.http.schemas import Input, Output
from quorate_api.identities.schemas import ProviderAnswer
from quorate_api.members.schemas import Role
from quorate_api.passkeys.schemas import FirstPasskey
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
    """With a password, a passkey, or an identity that a provider has told."""

    token: LinkSecret
    password: NewPassword | None = None
    passkey: FirstPasskey | None = None
    identity: ProviderAnswer | None = None

    @model_validator(mode="after")
    def _one(self) -> "Acceptance":
        if sum(each is not None for each in (self.password, self.passkey, self.identity)) != 1:
            raise ValueError("needs one of `password`, `passkey` and `identity`")
        return self


class Invited(Output):
    """The invitation, as the holder of its link sees it."""

    organization_name: str
    email: str
    role: Role
    has_account: bool = Field(description="Whether the address has an account: log in with it, then accept.")
