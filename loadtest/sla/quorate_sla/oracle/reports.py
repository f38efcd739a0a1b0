"""The times at which heads report, and the reports that arrive. A head looks at its counts each whole second.

Both sides need it: `truth`, because the SLA says what a minute without a report is, and `telemetry`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from quorate_sla.oracle.life import MINUTE_MS, Life, Reign

SECOND_MS = 1_000


@dataclass(frozen=True)
class Heard:
    """The arrived part of a head's minute: spans of time, each between two looks, in order.

    `counted`: spans whose counts belong to the minute, as they begin in it. `timed`: spans with time in it.
    """

    reign: Reign
    minute: int  # since 1970
    counted: tuple[tuple[int, int], ...]
    timed: tuple[tuple[int, int], ...]
    is_former: bool  # it reports though it cannot accept any more

    @property
    def from_ms(self) -> int:
        return max(self.minute * MINUTE_MS, self.timed[0][0])


def heard(life: Life) -> list[Heard]:
    """Every minute of a head of which something arrived."""
    lost_from_ms = {
        (each.epoch, each.minute): each.minute * MINUTE_MS + each.from_second * SECOND_MS for each in life.lost
    }
    found = []
    for reign in life.reigns:
        counted: dict[int, list[tuple[int, int]]] = defaultdict(list)
        timed: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for span in spans(reign):
            first = span[0] // MINUTE_MS
            for minute in range(first, (span[1] - 1) // MINUTE_MS + 1):
                if span[1] < lost_from_ms.get((reign.epoch, minute), span[1] + 1):
                    timed[minute].append(span)
                    if minute == first:
                        counted[minute].append(span)
        for minute, own in timed.items():
            is_former = own[0][0] >= reign.to_ms
            found.append(Heard(reign, minute, tuple(counted[minute]), tuple(own), is_former))
    return found


def spans(reign: Reign) -> Iterator[tuple[int, int]]:
    """Spans between a head's looks at its counts, from its begin to its last look."""
    at_ms = reign.from_ms
    for look_ms in _looks(reign):
        if look_ms > at_ms:
            yield at_ms, look_ms
            at_ms = look_ms


def _looks(reign: Reign) -> Iterator[int]:
    end_ms = reign.to_ms + reign.haunts_ms
    for look_ms in range(-(-reign.from_ms // SECOND_MS) * SECOND_MS, end_ms + 1, SECOND_MS):
        stands_still = any(each.kind == "process" and each.from_ms <= look_ms < each.to_ms for each in reign.outages)
        if not stands_still:
            yield look_ms
    if not reign.crashes:
        yield end_ms
