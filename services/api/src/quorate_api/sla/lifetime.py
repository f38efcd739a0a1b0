"""The time in which a group's SLA is in force. Pure."""

from datetime import datetime
from typing import Protocol

from quorate_api.sla.targets import RESOLUTION_MS


class Lived(Protocol):
    """A group, as far as its times go."""

    @property
    def active_at(self) -> datetime | None: ...

    @property
    def delete_requested_at(self) -> datetime | None: ...


def judged_span(group: Lived, from_ms: int, to_ms: int) -> tuple[int, int]:
    """The part of [from_ms, to_ms) from the group's admission until its deletion was requested; empty if there is none.

    The second after the one and the second before the other are not in it.
    """
    if group.active_at is None:
        return to_ms, to_ms
    begun_ms = max(from_ms, _ms(group.active_at) + RESOLUTION_MS)
    stop_ms = to_ms
    if group.delete_requested_at is not None:
        stop_ms = min(to_ms, _ms(group.delete_requested_at) - RESOLUTION_MS)
    return begun_ms, max(begun_ms, stop_ms)


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1_000)
