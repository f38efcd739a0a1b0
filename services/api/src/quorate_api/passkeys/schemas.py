"""Passkeys of a person."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from quorate_api.http.schemas import Input, Name, Output

Answer = Annotated[
    dict[str, Any],
    Field(description="The browser's `PublicKeyCredential` as JSON (`toJSON()`); WebAuthn level 3, section 5.1."),
]


class CeremonyOptions(Output):
    public_key: dict[str, Any] = Field(
        description="For `parseCreationOptionsFromJSON` or `parseRequestOptionsFromJSON` of the browser."
    )


class NewPasskey(Input):
    name: Name
    credential: Answer


class FirstPasskeyOptions(CeremonyOptions):
    user_id: UUID = Field(description="The id that the new account will have.")


class FirstPasskey(NewPasskey):
    user_id: Annotated[UUID, Field(strict=False, description="The one that came with the options.")]


class PasskeyLogin(Input):
    credential: Answer


class Passkey(Output):
    id: UUID
    name: str
    created_at: datetime
    last_used_at: datetime | None


class Passkeys(Output):
    items: list[Passkey] = Field(description="Oldest first.")
