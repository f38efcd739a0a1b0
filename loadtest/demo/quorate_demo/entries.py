"""The entries of the replay: 64 bytes each, unique, readable, and checkable bit by bit.

    wc98 day=15 min=0512 n=000000123456 org=stade-de-france.........

`n` is dense from 0 in each group, so that a reader knows what must come next. The same layout is in
`../js/entries.mjs`; `tests/test_entries.py` holds the two together.
"""

from __future__ import annotations

from quorate_demo.trace import Schedule

ENTRY_BYTES = 64
ORG_BYTES = 24
_NUMBER_AT = slice(23, 35)


class EntryFormat:
    """Writes and checks the entries of one customer's replay of one day."""

    def __init__(self, day: int, org: str, schedule: Schedule) -> None:
        if len(org) > ORG_BYTES or not org.isascii():
            raise ValueError(f"the organization's short name must be at most {ORG_BYTES} ASCII letters: {org}")
        self._schedule = schedule
        self._head = f"wc98 day={day:02d} min=".encode()
        self._tail = f" org={org:.<{ORG_BYTES}}".encode()

    def encode_range(self, first: int, end: int) -> list[bytes]:
        """Entries `first` to `end`, the end excluded."""
        entries: list[bytes] = []
        number = first
        while number < end:
            minute = self._schedule.minute_of(number)
            minute_end = min(end, self._schedule.end_of_minute(minute))
            head, tail = self._head + b"%04d n=" % minute, self._tail
            entries += [b"%b%012d%b" % (head, n, tail) for n in range(number, minute_end)]
            number = minute_end
        return entries

    def number_of(self, entry: bytes) -> int | None:
        """The number of an entry whose every byte is as it was written; None otherwise."""
        digits = entry[_NUMBER_AT]
        if len(entry) != ENTRY_BYTES or not digits.isdigit():
            return None
        number = int(digits)
        if number >= self._schedule.total:
            return None
        expected = b"%b%04d n=%012d%b" % (self._head, self._schedule.minute_of(number), number, self._tail)
        return number if entry == expected else None
