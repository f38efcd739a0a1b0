"""Addresses, passwords and secrets of links, as people give them."""

from typing import Annotated

from pydantic import AfterValidator, EmailStr, Field, StringConstraints

from quorate_api import limits


def _no_nul(value: str) -> str:
    if "\0" in value:
        raise ValueError("must not contain the character NUL")
    return value


Email = Annotated[EmailStr, AfterValidator(str.lower), Field(max_length=254)]
NewPassword = Annotated[
    str,
    StringConstraints(min_length=limits.PASSWORD_LENGTH_MIN, max_length=limits.PASSWORD_LENGTH_MAX),
    AfterValidator(_no_nul),
    Field(
        description=f"At least {limits.PASSWORD_LENGTH_MIN} characters, of any kind.",
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
