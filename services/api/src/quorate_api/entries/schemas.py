"""Entries of a log, for people who look into it."""

from datetime import datetime

from pydantic import Field

from quorate_api.http.schemas import Output


class LogEntry(Output):
    offset: int
    at: datetime = Field(description="By the head's clock, when it ordered the entry.")
    size_bytes: int
    data: str = Field(description="Base64 of the entry, or of its first bytes.")
    is_cut: bool = Field(description="Whether `data` lacks the entry's end.")


class LogPage(Output):
    """Entries that follow one another, oldest first."""

    items: list[LogEntry]
    first_offset: int = Field(description="Entries before it were discarded.")
    end_offset: int = Field(description="The offset that the next entry will have.")
    next_offset: int = Field(description="Where the page after this one begins.")
