"""Base classes of every resource's schemas."""

from typing import Annotated, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from quorate_api import limits


class Input(BaseModel):
    """A request's body. Unknown fields and wrong types are errors."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Output(BaseModel):
    """An answer's body."""

    model_config = ConfigDict(extra="forbid")


def printable(value: str) -> str:
    if not value.isprintable():
        raise ValueError("must not contain control characters or line breaks")
    return value


Name = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=limits.NAME_LENGTH_MAX),
    AfterValidator(printable),
]

Item = TypeVar("Item")


class Page(Output, Generic[Item]):
    items: list[Item]
    next_cursor: str | None = Field(description="The next page's `cursor`; null on the last page.")
