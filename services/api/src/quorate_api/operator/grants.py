"""Current grants of burst capacity, read from the newest entries of the stream `quorate:lending`.

Servers publish each change. Every half minute they publish all current grants and those that ended since. A grant that
no server has published for `GRANTS_AGE_S_MAX` has ended: only a running server renews grants. Nothing is stored here.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import structlog
from pydantic import BaseModel, ConfigDict, Field
from redis.asyncio import Redis
from redis.exceptions import RedisError

from quorate_api import limits
from quorate_api.operator.schemas import Lent

log = structlog.get_logger(__name__)

STREAM = "quorate:lending"
AWAY = (RedisError, OSError, TimeoutError)
Counter = Annotated[int, Field(ge=0, le=(1 << 63) - 1)]
Time = Annotated[int, Field(ge=0, le=253_402_300_799_999)]  # milliseconds; a datetime ends with the year 9999
Resource = Literal["cpu", "network", "storage_io"]


class Report(BaseModel):
    """A head's report about its group. `lent_per_s` is set only in reports of all current grants."""

    model_config = ConfigDict(extra="ignore")  # newer servers may send more

    at_ms: Time
    group: UUID
    epoch: Counter
    per_s: Counter
    since_ms: Time | None = None
    bounded_by: Resource | None = None
    bounded_by_server: Counter | None = None
    lent_per_s: Counter | None = None


class Entry(BaseModel):
    model_config = ConfigDict(extra="ignore")

    v: Literal[1]
    server_id: Counter
    changes: Annotated[list[Report], Field(max_length=limits.GRANTS_RECORDS_PER_ENTRY_MAX)] = []
    now: Annotated[list[Report], Field(max_length=limits.GRANTS_RECORDS_PER_ENTRY_MAX)] = []


@dataclass(frozen=True, slots=True)
class Reading:
    """`items` by group. `state`: whether they are complete."""

    items: list[Lent]
    state: Literal["complete", "partial", "unknown"]


async def read(redis: Redis | None, now: datetime, names: dict[int, str]) -> Reading:
    """`names`: the servers' names by id."""
    if redis is None:
        return Reading([], "unknown")
    oldest_ms = int((now.timestamp() - limits.GRANTS_AGE_S_MAX) * 1_000)
    try:
        # A server's clock may be ahead, so the time at which Redis took an entry counts.
        found: Any = await redis.xrevrange(STREAM, min=oldest_ms, count=limits.GRANTS_ENTRIES_MAX)
    except AWAY as error:
        log.warning("burst capacity is not known", error=str(error))
        return Reading([], "unknown")
    return await asyncio.to_thread(_reading, found, names)


def _reading(found: list[Any], names: dict[int, str]) -> Reading:
    """`found`: entries, newest first, as many as may be read."""
    entries: list[Entry] = []
    records = 0
    for _, fields in found:
        entry = _entry(fields)
        if entry is None:
            continue
        records += len(entry.changes) + len(entry.now)
        if records > limits.GRANTS_RECORDS_MAX:
            return Reading(current(reversed(entries), names), "partial")
        entries.append(entry)
    state: Literal["complete", "partial"] = "complete" if len(found) < limits.GRANTS_ENTRIES_MAX else "partial"
    return Reading(current(reversed(entries), names), state)


def current(entries: Iterable[Entry], names: dict[int, str]) -> list[Lent]:
    """The state after `entries` (oldest first) of groups with a grant or an unused part of a reservation, by id."""
    groups: dict[UUID, Lent] = {}
    for entry in entries:
        for report in (*entry.changes, *entry.now):
            before = groups.get(report.group)
            if before is not None and report.epoch < before.epoch:
                continue  # a former head that has not learned of its successor
            groups[report.group] = _state(entry.server_id, report, before, names)
    some = (one for one in groups.values() if one.borrowed_per_s or one.lent_per_s)
    return sorted(some, key=lambda one: one.group_id.bytes)


def _state(server_id: int, report: Report, before: Lent | None, names: dict[int, str]) -> Lent:
    is_same_head = before is not None and (before.server_id, before.epoch) == (server_id, report.epoch)
    lent_per_s = report.lent_per_s
    if lent_per_s is None:
        lent_per_s = before.lent_per_s if before is not None and is_same_head else 0
    has_grant = report.per_s > 0
    return Lent(
        group_id=report.group,
        epoch=report.epoch,
        server_id=server_id,
        server_name=names.get(server_id),
        borrowed_per_s=report.per_s,
        borrowed_since=_time(report.since_ms) if has_grant else None,
        bounded_by=report.bounded_by if has_grant else None,
        bounded_by_server_id=report.bounded_by_server if has_grant else None,
        lent_per_s=lent_per_s,
        observed_at=datetime.fromtimestamp(report.at_ms / 1_000, UTC),
    )


def _time(at_ms: int | None) -> datetime | None:
    return None if at_ms is None else datetime.fromtimestamp(at_ms / 1_000, UTC)


def _entry(fields: dict[bytes, bytes]) -> Entry | None:
    try:
        return Entry.model_validate_json(fields[b"d"])
    except (KeyError, ValueError) as error:
        log.warning("an entry about burst capacity does not follow the contract", error=str(error))
        return None
