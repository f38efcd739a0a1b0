"""The windows of one group's hour in a few kilobytes. Pure.

Rows are columns of differences to the row before. Counters of a log grow by the same numbers on each replica, and LZMA
finds what comes again. Columns have no names: those would be a tenth of the bytes. A column with the same number in all
rows is that number. Histograms have a line of their own, since most readers do not need them.
"""

import json
import lzma
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Self

from pydantic_core import from_json

from quorate_api.telemetry.windows import COUNTERS, HEAD_ROLES, Window

_VERSION = 3
# An hour has some ten kilobytes of digits: a large dictionary and alignment are of no use.
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "pb": 0, "dict_size": 1 << 16}]
_WORDS = ("incarnation", "role")
_NUMBERS = ("server_id", "epoch", "window_start_s", "log_epoch", *COUNTERS)
_HISTOGRAMS = ("latency_us", "judged_latency_us")
_COLUMNS = (*_WORDS, *_NUMBERS)  # in this order: another one, or one more, makes another version
# Version 2 has all columns but the last ones, and they were 0.
_SINCE_VERSION_3 = ("owed_read_entries", "late_read_entries")
assert _COLUMNS[-2:] == _SINCE_VERSION_3, _COLUMNS
_NO_READS_OWED = dict.fromkeys(_SINCE_VERSION_3, 0)


def pack(windows: Iterable[Window]) -> bytes:
    """Windows of one group. The same windows make the same bytes, in whichever order they come."""
    rows = sorted(windows, key=lambda window: window.key)
    columns: dict[str, Any] = {}
    for name in _WORDS:
        words = [getattr(row, name) for row in rows]
        known = sorted(set(words))
        columns[name] = [known, [known.index(word) for word in words]]
    for name in _NUMBERS:
        values = [getattr(row, name) for row in rows]
        differences = [after - before for before, after in zip([0, *values], values, strict=False)]
        columns[name] = differences if any(differences[1:]) else values[0]
    histograms = [[_pairs(getattr(row, name)) for row in rows] for name in _HISTOGRAMS]
    lines = ([_VERSION, len(rows), *(columns[name] for name in _COLUMNS)], histograms)
    text = "\n".join(json.dumps(line, separators=(",", ":")) for line in lines)
    return lzma.compress(text.encode(), lzma.FORMAT_RAW, filters=_FILTERS)


@dataclass(frozen=True, slots=True)
class Packed:
    """Windows of an hour, in the order of their keys. `count`: of windows. `histograms`: their line, unread."""

    count: int
    columns: dict[str, Any]
    histograms: bytes

    @classmethod
    def of(cls, data: bytes) -> Self:
        first, _, histograms = lzma.decompress(data, lzma.FORMAT_RAW, filters=_FILTERS).partition(b"\n")
        read = from_json(first)  # twice as fast as Python's own
        if isinstance(read, dict):  # version 1 named its columns
            lines = json.dumps([read[name] for name in _HISTOGRAMS]).encode()
            return cls(len(read["epoch"]), read | _NO_READS_OWED, lines)
        version, count, *columns = read
        if version == 2:
            columns += _NO_READS_OWED.values()
        else:
            assert version == _VERSION, "the worker wrote it"
        return cls(count, dict(zip(_COLUMNS, columns, strict=True)), histograms)

    def numbers(self, name: str) -> list[int]:
        """One number of each window."""
        column = self.columns[name]
        return [column] * self.count if isinstance(column, int) else list(accumulate(column))

    def windows(self, group_id: str) -> list[Window]:
        return self._windows(group_id, range(self.count))

    def judged(self, group_id: str) -> list[Window]:
        """Windows that the SLA is judged by: heads', and those of replicas that owed reads."""
        roles, owed = self._words("role"), self.numbers("owed_read_entries")
        places = [place for place in range(self.count) if roles[place] in HEAD_ROLES or owed[place]]
        return self._windows(group_id, places)

    def _windows(self, group_id: str, places: Iterable[int]) -> list[Window]:
        words: dict[str, list[Any]] = {name: self._words(name) for name in _WORDS}
        counts: dict[str, list[Any]] = {name: self.numbers(name) for name in _NUMBERS}
        latency, judged = from_json(self.histograms)
        return [
            Window(
                group_id=group_id,
                **{name: words[name][place] for name in _WORDS},
                **{name: counts[name][place] for name in _NUMBERS},
                latency_us=_histogram(latency[place]) or {},
                judged_latency_us=_histogram(judged[place]),
            )
            for place in places
        ]

    def _words(self, name: str) -> list[str]:
        known, places = self.columns[name]
        return [known[place] for place in places]


def _pairs(histogram: dict[int, int] | None) -> list[int] | None:
    """Buckets, as differences, and their counts."""
    if histogram is None:
        return None
    pairs: list[int] = []
    before = 0
    for bucket, count in sorted(histogram.items()):
        pairs += (bucket - before, count)
        before = bucket
    return pairs


def _histogram(pairs: list[int] | None) -> dict[int, int] | None:
    if pairs is None:
        return None
    return dict(zip(accumulate(pairs[::2]), pairs[1::2], strict=True))
