"""Addresses, passwords and secrets of links, as people give them."""

from typing import Annotated

from pydantic import AfterValidator, EmailStr, Field, StringConstraints

from quorate_api import limits
from quorate_api.security.weak_passwords import weakness


def _no_nul(value: str) -> str:
    if "\0" in value:
        raise ValueError("must not contain the character NUL")
    return value


def _hard_to_guess(value: str) -> str:
    why = weakness(value)
    if why is not None:
        raise ValueError(why)
    return value


Email = Annotated[EmailStr, AfterValidator(str.lower), Field(max_length=limits.EMAIL_LENGTH_MAX)]
NewPassword = Annotated[
    str,
    StringConstraints(min_length=limits.PASSWORD_LENGTH_MIN, max_length=limits.PASSWORD_LENGTH_MAX),
    AfterValidator(_no_nul),
    AfterValidator(_hard_to_guess),
    Field(
        description=f"At least {limits.PASSWORD_LENGTH_MIN} characters, of any kind; none that is known from breaches.",
        json_schema_extra={"format": "password"},
    ),
]
Password = Annotated[
    str,
    StringConstraints(min_length=1, max_length=limits.PASSWORD_LENGTH_MAX),
    Field(json_schema_extra={"format": "password"}),
]
LinkSecret = Annotated[
    str,
    StringConstraints(min_length=1, max_length=limits.MAIL_TOKEN_LENGTH_MAX),
    Field(description="The part of the link in the mail behind `#`."),
]
