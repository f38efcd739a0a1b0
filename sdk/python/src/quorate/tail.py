"""Following a log: the state of a subscription. Pure.

Offsets are dense, so a tail knows the next one. After a failure it subscribes again from there at any replica. It
drops duplicates; a gap is a server's error.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from quorate import wire
from quorate.codes import Code


class Entry(NamedTuple):
    """An entry of a log."""

    offset: int
    data: bytes
    timestamp_us: int
    """The head's wall clock when it ordered the entry's batch."""


def entries_from(message: wire.Entries, offset: int) -> list[Entry]:
    """The entries of ENTRIES from `offset` on. Batches arrive whole, so the first may begin before it.
    Raises WireError when they do not follow one another."""
    entries: list[Entry] = []
    at = 0
    expected = offset
    for batch in message.batches:
        end = batch.base_offset + batch.entry_count
        if batch.base_offset > expected:
            raise wire.WireError(Code.PROTOCOL_ERROR, f"offset {expected} is missing before {batch.base_offset}")
        if end > expected:
            skip = expected - batch.base_offset
            split = wire.split_entries(message.payload, batch.entry_count, at, at + batch.payload_len)
            timestamp_us = batch.timestamp_us
            entries += [Entry(expected + i, data, timestamp_us) for i, data in enumerate(split[skip:])]
            expected = end
        at += batch.payload_len
    return entries


class TailState:
    """A tail's state: the buffer, and the server's credit."""

    def __init__(self, offset: int, credit_bytes: int) -> None:
        self.next_offset = offset
        """The offset of the next entry from a server."""
        self.credit_bytes = credit_bytes
        self._buffer: deque[tuple[list[Entry], int]] = deque()
        self._buffered_bytes = 0
        self._owed_bytes = 0

    def on_entries(self, message: wire.Entries) -> None:
        entries = entries_from(message, self.next_offset)
        size = len(message.payload)
        self._buffered_bytes += size
        if entries:
            self.next_offset = entries[-1].offset + 1
        self._buffer.append((entries, size))

    def take(self) -> tuple[list[Entry], int] | None:
        """The next entries for the reader, and the credit to return now. Credit is returned in large amounts, because
        small ones would cost a frame for each frame."""
        if not self._buffer:
            return None
        entries, size = self._buffer.popleft()
        self._buffered_bytes -= size
        self._owed_bytes += size
        if self._owed_bytes < self.credit_bytes // 4:
            return entries, 0
        owed, self._owed_bytes = self._owed_bytes, 0
        return entries, owed

    def start(self) -> int:
        """Credit for a new subscription: the buffer's unused space."""
        self._owed_bytes = 0
        return max(1, self.credit_bytes - self._buffered_bytes)
