"""The entries' outcome: compares the acknowledged entries with those read back. Pure.

Both sides come as *runs*: stretches in which number and offset both go up by one. A good replay is
one run however long it is; each fault adds runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Run:
    """`count` entries: numbers `number`…, at offsets `offset`…."""

    offset: int
    number: int
    count: int


@dataclass(frozen=True)
class Verdict:
    """Counts of entries, except `reordered`: places in the log where a number is not above the last.

    `lost`: acknowledged, and not in the log. `duplicated`: copies beyond the first. `misplaced`:
    in the log, at another offset than the one acknowledged. `corrupted`: not as it was written.
    """

    acked: int
    read_back: int
    lost: int
    duplicated: int
    reordered: int
    misplaced: int
    corrupted: int

    @property
    def good(self) -> bool:
        faults = self.lost + self.duplicated + self.reordered + self.misplaced + self.corrupted
        return faults == 0 and self.acked == self.read_back


def judge(acked: list[Run], read: list[Run], corrupted: int = 0) -> Verdict:
    """`acked`: number and offset as acknowledged; `read`: as found in the log, in the log's order."""
    acked_numbers, read_numbers = _union(acked), _union(read)
    read_back = sum(run.count for run in read)
    found = _overlap(acked_numbers, read_numbers)
    return Verdict(
        acked=_length(acked_numbers),
        read_back=read_back + corrupted,
        lost=_length(acked_numbers) - found,
        duplicated=read_back - _length(read_numbers),
        reordered=_reordered(read),
        misplaced=found - _in_place(acked, read),
        corrupted=corrupted,
    )


def merge(runs: Iterable[Run]) -> list[Run]:
    """The same entries in as few runs as possible, in the order of their offsets."""
    merged: list[Run] = []
    for run in sorted(runs, key=lambda run: (run.offset, run.number)):
        last = merged[-1] if merged else None
        if last and last.offset + last.count == run.offset and last.number + last.count == run.number:
            merged[-1] = Run(last.offset, last.number, last.count + run.count)
        else:
            merged.append(run)
    return merged


Interval = tuple[int, int]


def _union(runs: list[Run]) -> list[Interval]:
    """The set of numbers in `runs`, as sorted intervals that do not touch."""
    result: list[Interval] = []
    for begin, end in sorted((run.number, run.number + run.count) for run in runs):
        if result and begin <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((begin, end))
    return result


def _length(intervals: list[Interval]) -> int:
    return sum(end - begin for begin, end in intervals)


def _overlap(left: list[Interval], right: list[Interval]) -> int:
    total = i = j = 0
    while i < len(left) and j < len(right):
        total += max(0, min(left[i][1], right[j][1]) - max(left[i][0], right[j][0]))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return total


def _reordered(read: list[Run]) -> int:
    return sum(1 for before, after in pairwise(read) if after.number < before.number + before.count)


def _in_place(acked: list[Run], read: list[Run]) -> int:
    """Numbers that are in the log at the very offset that was acknowledged."""
    total = 0
    shifts = {run.offset - run.number for run in acked}
    for shift in shifts:
        same = [[run for run in runs if run.offset - run.number == shift] for runs in (acked, read)]
        total += _overlap(_union(same[0]), _union(same[1]))
    return total
