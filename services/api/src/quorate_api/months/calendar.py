"""Months and days in UTC. Pure."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

LONGEST_MONTH_S = 31 * 86_400


def month_begin(at: datetime) -> datetime:
    """The begin of its month."""
    return at.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def month_end(start: datetime) -> datetime:
    """The begin of the month after the one that begins at `start`."""
    return (start + timedelta(days=31)).replace(day=1)


def day_begin(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def month_name(at: datetime) -> str:
    """YYYY-MM."""
    return f"{at.astimezone(UTC):%Y-%m}"


@dataclass(frozen=True, slots=True)
class SeenMonth:
    """A month that runs from `start` to `end`, seen at `now`."""

    start: datetime
    end: datetime
    now: datetime

    @property
    def now_s(self) -> int:
        return int(self.now.timestamp())

    @property
    def left_s(self) -> int:
        return max(0, int(self.end.timestamp()) - self.now_s)
