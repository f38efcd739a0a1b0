"""A reader's place in all partitions of a group (sdk/contract/partitions.md). Pure."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from quorate.errors import CursorError

_FORM = re.compile(r"qc1:([0-9a-f]{32}):(\d{1,20}(?:,\d{1,20})*)", re.ASCII)
_PARTITIONS_MAX = 256


@dataclass(frozen=True, slots=True)
class Cursor:
    """The offset of the next entry of each partition. `str(cursor)` is a text to keep, and `Cursor.parse` reads it."""

    group_id: uuid.UUID
    offsets: tuple[int, ...]

    def __str__(self) -> str:
        return f"qc1:{self.group_id.hex}:{','.join(map(str, self.offsets))}"

    @classmethod
    def parse(cls, text: str) -> Cursor:
        """Raises CursorError."""
        match = _FORM.fullmatch(text)
        if match is None:
            raise CursorError(f"{text[:80]!r} is no cursor: it reads qc1:<group id>:<offset>,<offset>,…")
        offsets = tuple(map(int, match[2].split(",")))
        if len(offsets) > _PARTITIONS_MAX or max(offsets) >= 2**64:
            raise CursorError("the cursor has more partitions, or greater offsets, than any group")
        return cls(uuid.UUID(match[1]), offsets)

    @classmethod
    def beginning(cls, group_id: uuid.UUID) -> Cursor:
        return cls(group_id, (0,))

    @classmethod
    def of_checkpoint(cls, group_id: uuid.UUID, checkpoint: Mapping[str, Any]) -> Cursor:
        """From the API's answer (`Control.checkpoint`). Partitions without an offset begin at 0."""
        known = {int(each["partition"]): int(each["next_offset"]) for each in checkpoint["offsets"]}
        return cls(group_id, tuple(known.get(number, 0) for number in range(max(known, default=0) + 1)))

    def within(self, group_id: uuid.UUID, partitions: int) -> Cursor:
        """The same with an offset for each of the group's partitions. Partitions that were added since begin at 0.

        Raises CursorError for a cursor of another group, or of more partitions."""
        if self.group_id != group_id:
            raise CursorError(f"the cursor is of the group {self.group_id}, and this is {group_id}")
        if len(self.offsets) > partitions:
            raise CursorError(
                f"the cursor has {len(self.offsets)} partitions, and the group has {partitions}: partitions are never "
                "removed, so it is of another group, or the handle is older than the cursor"
            )
        return Cursor(group_id, self.offsets + (0,) * (partitions - len(self.offsets)))


@dataclass(frozen=True, slots=True)
class LayoutChange:
    """A growth: a new partition's entries come after those below `ends` in each of the former partitions."""

    layout: int
    from_partitions: int
    to_partitions: int
    ends: tuple[int, ...]


def may_begin(partition: int, changes: Iterable[LayoutChange], offsets: Mapping[int, int]) -> bool:
    """Whether entries of the partition may be given to a reader who has come so far in the others."""
    added = (change for change in changes if change.from_partitions <= partition < change.to_partitions)
    return all(offsets.get(number, 0) >= end for change in added for number, end in enumerate(change.ends))
