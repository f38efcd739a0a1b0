"""Logs of a group that were lost with acked entries, from the changes of its status. Pure.

A group of which no copy is left is lost. Its log may still return with a server that was merely unreachable. It is
gone once the group begins another log, and counts as gone as long as it has not returned.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

STATUS, RESET = "group_status", "group_reset"  # kinds of events
LOST, DELETING = "lost", "deleting"


@dataclass(frozen=True, slots=True)
class Change:
    """An event about the group's status, or its reset, as the coordinator told it."""

    at: datetime
    kind: str
    status: str | None = None


def losses(changes: Iterable[Change]) -> list[datetime]:
    """Times at which a log was lost that has not returned. `changes`: oldest first."""
    found: list[datetime] = []
    lost_at: datetime | None = None
    for change in changes:
        if change.kind == RESET:
            if lost_at is not None:
                found.append(lost_at)
            lost_at = None
        elif change.status == LOST:
            lost_at = lost_at or change.at
        elif change.status != DELETING:
            lost_at = None  # a server came back with it
    return [*found, lost_at] if lost_at is not None else found
