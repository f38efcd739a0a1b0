"""The times in which servers were unreachable for clients, by the word of several probers. Pure.

`docs/reference/sla.md` is the contract.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

Time = tuple[int, int]  # [from, to) in milliseconds
Unreachable = Mapping[int, Sequence[Time]]  # by server; times of one server do not overlap, the earliest first
EVERYTHING_REACHED: Unreachable = {}


@dataclass(frozen=True, slots=True)
class Look:
    """A prober's minute. `failed`: of each server that it watched throughout, the times without an answer."""

    prober: str
    minute_s: int
    failed: Mapping[int, Sequence[Time]]


def unreachable(looks: Iterable[Look]) -> Unreachable:
    """A server was unreachable while more than half of the probers that watched it say so.

    A lone prober is not believed where none of several servers answers it: its own connection is as likely the cause.
    """
    minutes: dict[int, list[Look]] = defaultdict(list)
    for look in looks:
        minutes[look.minute_s].append(look)
    found: dict[int, list[Time]] = defaultdict(list)
    for _, here in sorted(minutes.items()):
        for server in sorted({server for look in here for server, times in look.failed.items() if times}):
            watching = [look for look in here if server in look.failed]
            votes = [look.failed[server] for look in watching]
            if len(watching) == 1:
                votes = [without(votes[0], cut_off(watching[0]))]
            found[server] += _of_at_least(votes, len(watching) // 2 + 1)
    return dict(found)


def cut_off(look: Look) -> list[Time]:
    """The times in which none of several servers answered the prober."""
    if len(look.failed) < 2:
        return []
    return _of_at_least(look.failed.values(), len(look.failed))


def overlap_ms(times: Iterable[Time], from_ms: int, to_ms: int) -> int:
    """How much of [from_ms, to_ms) lies in the times, which do not overlap."""
    return sum(max(0, min(end_ms, to_ms) - max(begin_ms, from_ms)) for begin_ms, end_ms in times)


def without(times: Iterable[Time], others: Sequence[Time]) -> list[Time]:
    """The parts of the times that lie in none of the others. The others are in order, and do not overlap."""
    found = []
    for begin_ms, end_ms in times:
        at_ms = begin_ms
        for other_begin_ms, other_end_ms in others:
            if other_end_ms <= at_ms or other_begin_ms >= end_ms:
                continue
            if other_begin_ms > at_ms:
                found.append((at_ms, other_begin_ms))
            at_ms = min(end_ms, other_end_ms)
        if at_ms < end_ms:
            found.append((at_ms, end_ms))
    return found


def _of_at_least(votes: Collection[Sequence[Time]], number: int) -> list[Time]:
    """The times that lie in those of at least so many voters."""
    changes: dict[int, int] = defaultdict(int)
    for times in votes:
        for begin_ms, end_ms in times:
            changes[begin_ms] += 1
            changes[end_ms] -= 1
    found: list[Time] = []
    count = 0
    for begin_ms, end_ms in pairwise(sorted(changes)):
        count += changes[begin_ms]
        if count < number:
            continue
        if found and found[-1][1] == begin_ms:
            found[-1] = (found[-1][0], end_ms)
        else:
            found.append((begin_ms, end_ms))
    return found
