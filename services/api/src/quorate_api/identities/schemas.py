"""Identity providers, and people's identities there."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field, StringConstraints

from quorate_api import limits
from quorate_api.http.schemas import Input, Output


class IdentityProvider(Output):
    id: str
    name: str = Field(description="For people, as on a button.")


class IdentityProviders(Output):
    items: list[IdentityProvider]


class ProviderAddress(Output):
    url: str = Field(description="Where the browser goes. The provider sends it back to `/login/return`.")


class ChosenProvider(Input):
    provider: Annotated[str, StringConstraints(min_length=1, max_length=limits.PROVIDER_NAME_LENGTH_MAX)]


class IdentityErrand(ChosenProvider):
    purpose: Literal["connect", "confirm"] = Field(
        description="`connect`: an identity that is to log in; needs a confirmation within the last 15 minutes. "
        "`confirm`: one that is connected, to show who it is."
    )


class ProviderAnswer(Input):
    """The parameters with which a provider sends the browser to `/login/return`."""

    state: Annotated[str, StringConstraints(min_length=1, max_length=100)]
    code: Annotated[str, StringConstraints(min_length=1, max_length=limits.PROVIDER_CODE_LENGTH_MAX)]


class Identity(Output):
    id: UUID
    provider: str = Field(description="The provider's id; it may be one that the service does not have any more.")
    provider_name: str
    email: str = Field(description="The person's address there, when it was connected.")
    created_at: datetime
    last_used_at: datetime | None


class Identities(Output):
    items: list[Identity]
