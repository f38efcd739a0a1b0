"""What servers lend one another's groups now, read from the newest of the stream `quorate:lending`.

Servers tell what changes, and each half minute all that is so and what has ended since; nothing of it is kept here.
What a server has not told for `LENDING_AGE_S_MAX` has ended with it: grants are not renewed by who is gone.
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


class Told(BaseModel):
    """What a head says of its group; `lent_per_s` only where all that is so is told."""

    model_config = ConfigDict(extra="ignore")  # newer servers may say more

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
    changes: Annotated[list[Told], Field(max_length=limits.LENDING_RECORDS_PER_ENTRY_MAX)] = []
    now: Annotated[list[Told], Field(max_length=limits.LENDING_RECORDS_PER_ENTRY_MAX)] = []


@dataclass(frozen=True, slots=True)
class Reading:
    """`items` by group. `state`: whether they are all."""

    items: list[Lent]
    state: Literal["complete", "partial", "unknown"]


async def read(redis: Redis | None, now: datetime, names: dict[int, str]) -> Reading:
    """`names`: of servers."""
    if redis is None:
        return Reading([], "unknown")
    oldest_ms = int((now.timestamp() - limits.LENDING_AGE_S_MAX) * 1_000)
    try:
        # A server's clock may be ahead: what counts is when Redis took an entry.
        found: Any = await redis.xrevrange(STREAM, min=oldest_ms, count=limits.LENDING_ENTRIES_MAX)
    except AWAY as error:
        log.warning("what is lent is not known", error=str(error))
        return Reading([], "unknown")
    return await asyncio.to_thread(_reading, found, names)


def _reading(found: list[Any], names: dict[int, str]) -> Reading:
    """`found`, newest first: as many as may be read."""
    entries: list[Entry] = []
    records = 0
    for _, fields in found:
        entry = _entry(fields)
        if entry is None:
            continue
        records += len(entry.changes) + len(entry.now)
        if records > limits.LENDING_RECORDS_MAX:
            return Reading(current(reversed(entries), names), "partial")
        entries.append(entry)
    state: Literal["complete", "partial"] = "complete" if len(found) < limits.LENDING_ENTRIES_MAX else "partial"
    return Reading(current(reversed(entries), names), state)


def current(entries: Iterable[Entry], names: dict[int, str]) -> list[Lent]:
    """`entries`, oldest first: what is so after them, of groups that were lent something or lend something, by id."""
    groups: dict[UUID, Lent] = {}
    for entry in entries:
        for told in (*entry.changes, *entry.now):
            before = groups.get(told.group)
            if before is not None and told.epoch < before.epoch:
                continue  # a head of before, which has not heard that there is another
            groups[told.group] = _lent(entry.server_id, told, before, names)
    some = (one for one in groups.values() if one.borrowed_per_s or one.lent_per_s)
    return sorted(some, key=lambda one: one.group_id.bytes)


def _lent(server_id: int, told: Told, before: Lent | None, names: dict[int, str]) -> Lent:
    is_same_head = before is not None and (before.server_id, before.epoch) == (server_id, told.epoch)
    lent_per_s = told.lent_per_s
    if lent_per_s is None:
        lent_per_s = before.lent_per_s if before is not None and is_same_head else 0
    is_borrowing = told.per_s > 0
    return Lent(
        group_id=told.group,
        epoch=told.epoch,
        server_id=server_id,
        server_name=names.get(server_id),
        borrowed_per_s=told.per_s,
        borrowed_since=_time(told.since_ms) if is_borrowing else None,
        bounded_by=told.bounded_by if is_borrowing else None,
        bounded_by_server_id=told.bounded_by_server if is_borrowing else None,
        lent_per_s=lent_per_s,
        observed_at=datetime.fromtimestamp(told.at_ms / 1_000, UTC),
    )


def _time(at_ms: int | None) -> datetime | None:
    return None if at_ms is None else datetime.fromtimestamp(at_ms / 1_000, UTC)


def _entry(fields: dict[bytes, bytes]) -> Entry | None:
    try:
        return Entry.model_validate_json(fields[b"d"])
    except (KeyError, ValueError) as error:
        log.warning("an entry about what is lent does not follow the contract", error=str(error))
        return None
