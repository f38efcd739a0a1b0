"""Appends across a change of partitions (sdk/contract/partitions.md, "Layouts, and growth"). Pure."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from quorate.keys import partition_of


@dataclass(slots=True)
class Call:
    """An append, until it has its outcome."""

    number: int
    """In the order of the calls."""
    entry: bytes
    key: bytes | str | None
    partition: int | None
    """The caller's choice."""
    ends_at: float
    future: asyncio.Future[Placed]


@dataclass(frozen=True, slots=True)
class Placed:
    """The place of an appended entry."""

    partition: int
    offset: int


class Rerouting:
    """The appends that are under way, and those that wait for another layout."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self.under_way = 0
        self.is_changing = False
        """A head has refused this layout: nothing is sent until there is another."""
        self._held: list[Call] = []
        self._turn = 0

    def place(self, call: Call) -> int:
        """The partition to append to. Calls without a key take turns, some in a row so that they share batches."""
        if call.partition is not None:
            return call.partition
        if call.key is not None:
            return partition_of(call.key, self.partitions)
        self._turn += 1
        return self._turn // CALLS_IN_A_ROW % self.partitions

    def hold(self, call: Call) -> None:
        self._held.append(call)

    @property
    def is_drained(self) -> bool:
        """Whether everything that was sent under the layout has its outcome."""
        return self.under_way == 0

    @property
    def held(self) -> int:
        return len(self._held)

    def take_late(self, now: float) -> list[Call]:
        """Calls whose deadlines have passed. They did not happen."""
        late = [call for call in self._held if call.ends_at <= now]
        self._held = [call for call in self._held if call.ends_at > now]
        return late

    def use(self, partitions: int) -> list[Call]:
        """Another layout. Returns what is to be appended now, in the order of the calls."""
        self.partitions, self.is_changing = partitions, False
        held, self._held = sorted(self._held, key=lambda call: call.number), []
        return held

    def give_up(self) -> list[Call]:
        """There will be no other layout. Returns what did not happen."""
        self.is_changing = False
        held, self._held = self._held, []
        return held


CALLS_IN_A_ROW = 128
