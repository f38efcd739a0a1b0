"""Checkpoints: how far a consumer has come in each partition of a group."""

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from quorate_api import limits
from quorate_api.http.schemas import Input, Output, printable

Consumer = Annotated[
    str,
    StringConstraints(min_length=1, max_length=limits.CONSUMER_NAME_LENGTH_MAX),
    AfterValidator(printable),
]


class PartitionOffset(Input):
    partition: Annotated[int, Field(ge=0, lt=limits.PARTITIONS_MAX)] = Field(
        description="0 in a group without partitions."
    )
    next_offset: Annotated[int, Field(ge=0, lt=2**63)] = Field(
        description="The first entry that is not done has this offset."
    )


class NewCheckpoint(Input):
    offsets: Annotated[list[PartitionOffset], Field(min_length=1, max_length=limits.PARTITIONS_MAX)] = Field(
        description="Offsets of some partitions or all; others stay as they are."
    )
    rewind: bool = Field(
        False, description="Lower offsets count, too. Otherwise they are ignored: a late request takes nothing back."
    )


class Checkpointed(Output):
    partition: int
    next_offset: int
    updated_at: datetime


class Checkpoint(Output):
    consumer: str
    offsets: list[Checkpointed] = Field(description="Partitions without one begin at the beginning of their logs.")
