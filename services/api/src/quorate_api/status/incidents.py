"""Incidents as operators tell of them: a timeline of updates, to which is only added. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from typing import Literal
from uuid import UUID

from quorate_api.status.rules import Component

Phase = Literal["investigating", "identified", "monitoring", "resolved"]
Impact = Literal["degraded", "outage"]


@dataclass(frozen=True, slots=True)
class Update:
    id: UUID
    at: datetime
    phase: Phase
    impact: Impact
    message: str


@dataclass(frozen=True, slots=True)
class Told:
    """An incident with its updates, newest first. It has one at least."""

    id: UUID
    title: str
    regions: tuple[str, ...]
    components: tuple[Component, ...]
    opened_at: datetime
    updates: Sequence[Update]

    @property
    def latest(self) -> Update:
        return self.updates[0]

    @property
    def resolved_at(self) -> datetime | None:
        """The time at which it was resolved, and not opened again since; None while it is open."""
        since = list(takewhile(lambda update: update.phase == "resolved", self.updates))
        return since[-1].at if since else None
