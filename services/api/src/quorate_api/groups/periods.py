"""The SLAs that a group had, with their times, for bills, reports and charts. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
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


def rate_at(found: list[Period], start_s: int) -> int:
    """Reserved appends per second at this time. Before the first period, the first period's rate."""
    for period in found:
        if period.end is None or start_s < period.end.timestamp():
            return int(period.sla["rate_per_s"])
    raise AssertionError("the last period is open")
