"""Caps that are reached, and the access that they leave to groups. Pure.

A cap throttles once the month so far costs it. It suspends early enough that the month costs no more than it. So all
cost that is certain until the month's end counts. Use before a suspension reaches the servers counts, too.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from quorate_api import limits
from quorate_api.coordinator.schemas import Access

Action = Literal["throttle", "suspend"]
Owner = UUID | None  # a project; None: the organization

_LEAVES: Mapping[str, Access] = {"throttle": "reserved", "suspend": "suspended"}
_FROM_MILD: tuple[Access, ...] = ("full", "reserved", "suspended")


@dataclass(frozen=True, slots=True)
class Cap:
    """A budget that acts. Another amount, or another action, makes it another cap."""

    budget_id: UUID
    organization_id: UUID
    owner: Owner
    action: Action
    monthly_micros: int

    @property
    def key(self) -> tuple[UUID, str, int]:
        return (self.budget_id, self.action, self.monthly_micros)


@dataclass(frozen=True, slots=True)
class Position:
    """The cost of a month. `certain_micros`: until its end, if nothing more is appended or read."""

    spent_micros: int
    certain_micros: int
    usage_micros_per_s: float = 0.0


def reached_micros(cap: Cap, position: Position) -> int | None:
    """The amount by which the cap is reached; None: it is not."""
    if cap.action == "throttle":
        amount = position.spent_micros
    else:
        amount = position.certain_micros + int(position.usage_micros_per_s * limits.CAP_AHEAD_S)
    return amount if amount >= cap.monthly_micros else None


def access_of(project_id: UUID, acting: Iterable[Cap]) -> Access:
    """The access that these caps of its organization leave to a group of the project: the least of them."""
    left = [_LEAVES[cap.action] for cap in acting if cap.owner in (None, project_id)]
    return max(left, key=_FROM_MILD.index, default="full")


def acting(caps: Iterable[Cap], acted: Collection[tuple[UUID, str, int]]) -> list[Cap]:
    """Caps that have acted this month, and have not been changed since."""
    return [cap for cap in caps if cap.key in acted]
