"""The trace, and when each of its entries is due in a time-compressed replay. Pure but for reading the file."""

from __future__ import annotations

import csv
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path

FILE = Path(__file__).resolve().parents[1] / "worldcup98" / "requests-per-minute.csv"
MINUTES_PER_DAY = 1440


def load_day(day: int, file: Path = FILE) -> list[int]:
    """Requests in each of the day's 1440 minutes."""
    requests = [0] * MINUTES_PER_DAY
    with file.open(newline="") as stream:
        for row in csv.DictReader(stream):
            if int(row["day"]) == day:
                requests[int(row["minute"])] = int(row["requests"])
    if not any(requests):
        raise ValueError(f"the trace has no day {day}")
    return requests


def busiest_stretch(requests: list[int], minutes: int) -> int:
    """The first minute of the period of `minutes` with the most requests."""
    before = [0, *accumulate(requests)]
    starts = range(len(requests) - minutes + 1)
    return max(starts, key=lambda start: before[start + minutes] - before[start])


@dataclass(frozen=True)
class Schedule:
    """Entries 0, 1, 2 … spread over `seconds`. Each minute of the trace gets an equal share of the time, and its
    entries are evenly spaced in it. An open-loop load: it does not wait for answers."""

    first_minute: int
    requests: list[int]
    seconds: float

    def __post_init__(self) -> None:
        assert self.requests, "a schedule needs minutes"
        assert self.seconds > 0, "a schedule needs time"

    @property
    def total(self) -> int:
        return self._cumulative[-1]

    @property
    def minute_s(self) -> float:
        """How long a minute of the trace lasts in the replay."""
        return self.seconds / len(self.requests)

    @property
    def peak_per_s(self) -> float:
        return max(self.requests) / self.minute_s

    def due(self, elapsed_s: float) -> int:
        """How many entries are due by `elapsed_s`: entries with a lower number."""
        if elapsed_s <= 0:
            return 0
        index = int(elapsed_s / self.minute_s)
        if index >= len(self.requests):
            return self.total
        share = elapsed_s / self.minute_s - index
        # The k-th of n entries of a minute is due at k/n of it, so the first is due at its begin.
        return min(self._cumulative[index] + int(share * self.requests[index]) + 1, self._cumulative[index + 1])

    def due_at_s(self, number: int) -> float:
        """Due time of entry `number`, in seconds from the begin."""
        index = bisect_right(self._cumulative, number) - 1
        share = (number - self._cumulative[index]) / self.requests[index]
        return (index + share) * self.minute_s

    def minute_of(self, number: int) -> int:
        """The minute of the day in which request `number` came to the web site."""
        return self.first_minute + bisect_right(self._cumulative, number) - 1

    def end_of_minute(self, minute: int) -> int:
        """The first number that came after this minute of the day."""
        return self._cumulative[minute - self.first_minute + 1]

    @cached_property
    def _cumulative(self) -> list[int]:
        """Requests before each minute, and at the end all of them."""
        return [0, *accumulate(self.requests)]
