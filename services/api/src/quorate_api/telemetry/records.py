"""An entry of the stream `quorate:usage`, checked (docs/internals/telemetry.md). Pure."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from quorate_api import limits
from quorate_api.telemetry import histogram
from quorate_api.telemetry.windows import WINDOW_S, Window

Counter = Annotated[int, Field(ge=0, le=(1 << 63) - 1)]
Bucket = Annotated[int, Field(ge=0, le=histogram.BUCKET_MAX)]


class Record(BaseModel):
    model_config = ConfigDict(extra="ignore")  # newer servers may send more

    group: UUID
    epoch: Counter
    log_epoch: Counter = 0  # the epoch of the reset that began the log
    role: Literal["head", "follower", "tail", "learner", "sole"]
    window_start_s: Annotated[int, Field(ge=0, le=1 << 40, multiple_of=WINDOW_S)]
    window_s: Literal[60]
    committed_entries: Counter
    committed_bytes: Counter
    first_committed_entries: Counter
    first_committed_bytes: Counter
    offered_entries: Counter = 0
    throttled_entries: Counter = 0
    throttled_within_sla_entries: Counter = 0
    refused_entries: Counter = 0
    read_entries: Counter = 0
    read_bytes: Counter = 0
    active_ms: Counter = 0
    paused_ms: Counter = 0
    stored_bytes: Counter = 0
    latency_us: Annotated[dict[Bucket, Counter], Field(max_length=limits.HISTOGRAM_BUCKETS_MAX)] = Field(
        default_factory=dict
    )


class Entry(BaseModel):
    model_config = ConfigDict(extra="ignore")

    v: Literal[1]
    server_id: Counter
    incarnation: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[0-9a-zA-Z_-]+$")]
    at_ms: Counter
    records: Annotated[list[Record], Field(max_length=limits.RECORDS_PER_ENTRY_MAX)]


def windows_of(raw: bytes | str) -> list[Window]:
    """The windows in an entry. Raises ValueError if it does not follow the contract."""
    entry = Entry.model_validate_json(raw)
    return [
        Window(
            group_id=str(record.group),
            server_id=entry.server_id,
            incarnation=entry.incarnation,
            **record.model_dump(exclude={"group", "window_s"}),
        )
        for record in entry.records
    ]
