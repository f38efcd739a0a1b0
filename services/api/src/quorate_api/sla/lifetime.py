"""The time in which a group's SLA is in force. Pure."""

from datetime import datetime
from typing import Protocol


class Lived(Protocol):
    """A group, as far as its times go."""

    @property
    def active_at(self) -> datetime | None: ...

    @property
    def delete_requested_at(self) -> datetime | None: ...


def judged_span(group: Lived, from_ms: int, to_ms: int) -> tuple[int, int]:
    """The part of [from_ms, to_ms) from the group's admission until its deletion was requested; empty if there is none.

    A deleted group's last minute ends with the group.
    """
    if group.active_at is None:
        return to_ms, to_ms
    begun_ms = max(from_ms, _ms(group.active_at))
    stop_ms = to_ms if group.delete_requested_at is None else min(to_ms, _ms(group.delete_requested_at))
    return begun_ms, max(begun_ms, stop_ms)


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1_000)
