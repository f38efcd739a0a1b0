"""Looking into a log, as a reader with the caller's permission: it counts as reads of the group."""

import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar
from uuid import UUID

import quorate
from quorate.errors import QuorateError

from quorate_api import limits
from quorate_api.access.permissions import Permission
from quorate_api.database.work import Work
from quorate_api.entries import log
from quorate_api.entries.log import Log, Page
from quorate_api.entries.schemas import LogEntry, LogPage
from quorate_api.errors import Code, Problem, invalid, not_found
from quorate_api.groups import service as groups
from quorate_api.http.principal import Principal
from quorate_api.http.services import Services

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Place:
    """The begin of a page. Neither offset nor time: so that the newest entry is its last."""

    offset: int | None
    at: datetime | None
    limit: int
    wait_s: float


async def page(
    work: Work, services: Services, principal: Principal, group_id: UUID, partition: int, place: Place
) -> LogPage:
    async def read(reader: Log) -> Page:
        if place.at is not None:
            return await log.from_time(reader, int(place.at.timestamp() * 1_000_000), place.limit)
        if place.offset is not None:
            return await log.from_offset(reader, place.offset, place.limit, place.wait_s)
        return await log.newest(reader, place.limit)

    if place.offset is not None and place.at is not None:
        raise invalid("at", "Give `offset` or `at`, and not both.")
    return _shown(await _with_log(work, services, principal, group_id, partition, read))


async def one(
    work: Work, services: Services, principal: Principal, group_id: UUID, partition: int, offset: int
) -> bytes:
    """A whole entry."""

    async def read(reader: Log) -> Page:
        return await log.from_offset(reader, offset, 1, 0.0)

    found = await _with_log(work, services, principal, group_id, partition, read)
    if not found.entries or found.entries[0].offset != offset:
        raise not_found("entry")
    return found.entries[0].data


async def _with_log(
    work: Work,
    services: Services,
    principal: Principal,
    group_id: UUID,
    partition: int,
    read: Callable[[Log], Awaitable[T]],
) -> T:
    with services.readers.enter(principal.organization_id):
        issued = await groups.handle(work, services, principal, group_id, only=Permission.READ)
        members = issued.partitions.members if issued.partitions is not None else None
        if partition >= (len(members) if members is not None else 1):
            raise invalid("partition", "The group has no such partition; they are numbered from 0.")
        text = issued.model_dump_json(by_alias=True)
        async with work.outside():
            try:
                async with _opened(text, partition) as reader:
                    return await read(reader)
            except QuorateError as error:
                raise Problem(Code.GROUP_NOT_READY, f"Its servers answer: {error}", retry_after_s=2) from None


@asynccontextmanager
async def _opened(handle: str, partition: int) -> AsyncIterator[Log]:
    whole = quorate.Handle.parse(handle)
    if whole.partitions is None:
        async with await quorate.connect(whole, timeout=limits.ENTRIES_TIMEOUT_S, read_only=True) as client:
            yield client
        return
    async with await quorate.connect_partitioned(whole, timeout=limits.ENTRIES_TIMEOUT_S) as client:
        yield client.partition(partition)


def _shown(found: Page) -> LogPage:
    return LogPage(
        items=[
            LogEntry(
                offset=entry.offset,
                at=datetime.fromtimestamp(entry.timestamp_us / 1_000_000, UTC),
                size_bytes=len(entry.data),
                data=base64.b64encode(entry.data[: limits.ENTRY_SHOWN_BYTES_MAX]).decode(),
                is_cut=len(entry.data) > limits.ENTRY_SHOWN_BYTES_MAX,
            )
            for entry in found.entries
        ],
        first_offset=found.first_offset,
        end_offset=found.end_offset,
        next_offset=found.next_offset,
    )
