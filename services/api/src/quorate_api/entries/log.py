"""A log as people look into it: the newest entries, those from an offset or from a time."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

from quorate import Entry
from quorate.client import GroupStatus, ReadResult

from quorate_api import limits


class Log(Protocol):
    """The part of the SDK's client that is needed."""

    async def read(self, offset: int, *, max_entries: int, max_bytes: int, wait: float) -> ReadResult: ...

    async def status(self) -> GroupStatus: ...


class Page(NamedTuple):
    entries: list[Entry]
    first_offset: int
    end_offset: int
    next_offset: int


async def newest(log: Log, limit: int) -> Page:
    status = await log.status()
    return await _page(log, status, status.commit_offset - limit, limit, 0.0)


async def from_offset(log: Log, offset: int, limit: int, wait_s: float) -> Page:
    """From `offset` on, or from the first entry that is still there. Waits where the log ends before it."""
    return await _page(log, await log.status(), offset, limit, wait_s)


async def _page(log: Log, status: GroupStatus, offset: int, limit: int, wait_s: float) -> Page:
    begin = min(max(offset, status.trim_offset), status.commit_offset)
    if begin == status.commit_offset and wait_s <= 0.0:
        return Page([], status.trim_offset, status.commit_offset, begin)
    found = await log.read(begin, max_entries=limit, max_bytes=limits.ENTRIES_BYTES_MAX, wait=wait_s)
    return Page(found.entries, found.trim_offset, max(found.commit_offset, found.next_offset), found.next_offset)


async def from_time(log: Log, at_us: int, limit: int) -> Page:
    """From the first entry that was ordered at that time or later."""
    status = await log.status()

    async def time_of(offset: int) -> int:
        found = await log.read(offset, max_entries=1, max_bytes=1, wait=0.0)
        # A replica that lags has not got it yet, so it is a late one.
        return found.entries[0].timestamp_us if found.entries else at_us

    offset = await first_since(status.trim_offset, status.commit_offset, at_us, time_of)
    return await _page(log, status, offset, limit, 0.0)


async def first_since(low: int, high: int, at_us: int, time_of: Callable[[int], Awaitable[int]]) -> int:
    """The first offset in `low..high` with that time or a later one, else `high`. Times must not fall with offsets:
    those of a log do, by the difference of two clocks, only where another server has become its head."""
    while low < high:
        middle = (low + high) // 2
        if await time_of(middle) < at_us:
            low = middle + 1
        else:
            high = middle
    return low
