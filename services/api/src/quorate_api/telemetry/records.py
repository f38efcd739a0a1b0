"""An entry of the stream `quorate:usage`, checked (docs/internals/telemetry.md). Pure.

A record that cannot be read is rejected alone, and the others of its entry count.
"""

import json
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from quorate_api import limits
from quorate_api.telemetry import histogram
from quorate_api.telemetry.windows import WINDOW_S, Window

Counter = Annotated[int, Field(ge=0, le=limits.COUNTER_MAX)]
Number = Annotated[int, Field(ge=0, le=(1 << 63) - 1)]
LatencyCount = Annotated[int, Field(ge=0, le=limits.LATENCY_COUNT_MAX)]
Bucket = Annotated[int, Field(ge=0, le=histogram.BUCKET_MAX)]

Buckets = Annotated[dict[Bucket, LatencyCount], Field(max_length=limits.HISTOGRAM_BUCKETS_MAX)]


class Record(BaseModel):
    model_config = ConfigDict(extra="ignore")  # newer servers may send more

    group: UUID
    epoch: Number
    log_epoch: Number = 0  # the epoch of the reset that began the log
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
    within_sla_entries: Counter = 0
    refused_entries: Counter = 0
    read_entries: Counter = 0
    read_bytes: Counter = 0
    active_ms: Counter = 0
    paused_ms: Counter = 0
    from_ms: Counter = 0
    to_ms: Counter = 0
    stored_bytes: Counter = 0
    owed_read_entries: Counter = 0
    late_read_entries: Counter = 0
    latency_us: Buckets = Field(default_factory=dict)
    judged_latency_us: Buckets | None = None


class Envelope(BaseModel):
    model_config = ConfigDict(extra="ignore")

    v: Literal[1]
    server_id: Number
    incarnation: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[0-9a-zA-Z_-]+$")]
    at_ms: Number


class Entry(Envelope):
    records: Annotated[list[Record], Field(max_length=limits.RECORDS_PER_ENTRY_MAX)]


class _Unchecked(Envelope):
    records: Annotated[list[Any], Field(max_length=limits.RECORDS_PER_ENTRY_MAX)]


WHOLE_ENTRY = -1


@dataclass(frozen=True, slots=True)
class Rejected:
    """A record, or an entry as a whole, that does not count. `data` is for people."""

    entry_id: str
    position: int
    reason: str
    data: str


@dataclass(frozen=True, slots=True)
class Found:
    """A record that follows the contract, as a window."""

    entry_id: str
    position: int
    window: Window

    def rejected(self, reason: str) -> Rejected:
        return Rejected(self.entry_id, self.position, reason, json.dumps(asdict(self.window)))


def read(entry_id: str, raw: bytes | str) -> tuple[list[Found], list[Rejected]]:
    """The windows in an entry of the stream, and what cannot be read of it."""
    try:
        entry = Entry.model_validate_json(raw)
    except ValidationError:
        return _one_by_one(entry_id, raw)
    return [Found(entry_id, position, _window(entry, record)) for position, record in enumerate(entry.records)], []


def _one_by_one(entry_id: str, raw: bytes | str) -> tuple[list[Found], list[Rejected]]:
    try:
        entry = _Unchecked.model_validate_json(raw)
    except ValidationError as error:
        text = raw.decode(errors="replace") if isinstance(raw, bytes) else raw
        return [], [Rejected(entry_id, WHOLE_ENTRY, _reason(error), text)]
    found, rejected = [], []
    for position, content in enumerate(entry.records):
        try:
            found.append(Found(entry_id, position, _window(entry, Record.model_validate(content))))
        except ValidationError as error:
            about = {"server_id": entry.server_id, "incarnation": entry.incarnation, "at_ms": entry.at_ms}
            rejected.append(Rejected(entry_id, position, _reason(error), json.dumps(about | {"record": content})))
    return found, rejected


def _reason(error: ValidationError) -> str:
    """The first thing that is wrong, in one line."""
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(str(part) for part in first['loc']) or 'the entry'}: {first['msg']}"


def _window(entry: Envelope, record: Record) -> Window:
    return Window(
        group_id=str(record.group),
        server_id=entry.server_id,
        incarnation=entry.incarnation,
        **record.model_dump(exclude={"group", "window_s"}),
    )
