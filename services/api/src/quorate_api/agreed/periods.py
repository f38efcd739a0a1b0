"""The SLAs that a group had, with their times, for bills, reports and charts. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Row


@dataclass(frozen=True, slots=True)
class Period:
    """An SLA from `start` (None: the group was not active yet) until `end` (None: it is the current SLA)."""

    sla: dict[str, Any]
    hourly_micros: int
    start: datetime | None
    end: datetime | None


def periods(group: Row[Any], former: Iterable[Row[Any]]) -> list[Period]:
    """Oldest first, without gaps, with at least the current one. `former`: the group's rows of `former_slas`."""
    found = []
    start = group.active_at
    for row in sorted(former, key=lambda each: each.revision):
        found.append(Period(row.sla, row.hourly_micros, start, row.until))
        start = row.until
    found.append(Period(group.sla, group.hourly_micros, start, None))
    return found


def period_at(found: list[Period], at: datetime) -> Period:
    """The period at this time. Before the first one, the first."""
    return next(period for period in found if period.end is None or at < period.end)


def rate_at(found: list[Period], start_s: int) -> int:
    """Reserved appends per second at this time. Before the first period, the first period's rate."""
    return int(period_at(found, datetime.fromtimestamp(start_s, UTC)).sla["rate_per_s"])
