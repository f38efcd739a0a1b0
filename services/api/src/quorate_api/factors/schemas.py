"""Second factors of a person."""

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from quorate_api.http.schemas import Input, Output


def _bare(text: str) -> str:
    return text.replace(" ", "").replace("-", "").upper()


Code = Annotated[
    str,
    StringConstraints(min_length=6, max_length=20),
    AfterValidator(_bare),
    Field(description="Six digits of the authenticator, or a recovery code. Spaces and dashes do not count."),
]


class NewTotp(Output):
    secret: str = Field(description="For authenticators that read no QR code. It is shown only now.")
    uri: str = Field(description="The content of the QR code (`otpauth://…`).")


class CodeInput(Input):
    code: Code


class RecoveryCodes(Output):
    codes: list[str] = Field(description="Each works once in the place of a code. They are shown only now.")


class SecondFactor(Output):
    totp: bool = Field(description="Whether logging in takes a code of an authenticator.")
    recovery_codes_left: int
