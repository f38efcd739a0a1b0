"""A person's sessions."""

from datetime import datetime
from uuid import UUID

from pydantic import Field, model_validator

from quorate_api.factors.schemas import Code
from quorate_api.http.schemas import Input, Output
from quorate_api.identities.schemas import ProviderAnswer
from quorate_api.passkeys.schemas import Answer
from quorate_api.users.schemas import Password


class Session(Output):
    id: UUID
    organization_id: UUID
    organization_name: str
    created_at: datetime
    last_seen_at: datetime = Field(description="Exact to the minute.")
    expires_at: datetime
    address: str = Field(description="The network address at its begin.")
    user_agent: str = Field(description="The browser, as it called itself.")
    is_current: bool


class Sessions(Output):
    items: list[Session]


class Confirmation(Input):
    """One of them."""

    password: Password | None = None
    code: Code | None = None
    passkey: Answer | None = None
    identity: ProviderAnswer | None = None

    @model_validator(mode="after")
    def _one(self) -> "Confirmation":
        if sum(each is not None for each in (self.password, self.code, self.passkey, self.identity)) != 1:
            raise ValueError("needs one of `password`, `code`, `passkey` and `identity`")
        return self
