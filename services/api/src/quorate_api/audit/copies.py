"""Copies of audit events in a group of Quorate's own, and their comparison with the database. No I/O.

A copy is JSON `{log,seq,hash,event}`; `log` is an organization's id, or `operators`. The same copy may stand twice: a
worker that crashed appends it again.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from quorate_api.audit.chain import Linked

OPERATORS = "operators"
DIFFERENCES_MAX = 20  # more tell nothing new

Name = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Copy:
    log: str
    linked: Linked

    @property
    def name(self) -> Name:
        return self.log, self.linked.seq


def as_entry(copy: Copy) -> bytes:
    fields = {"log": copy.log, "seq": copy.linked.seq, "hash": copy.linked.hash.hex(), "event": copy.linked.event}
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()


def of_entry(data: bytes) -> Copy | None:
    """None: the entry is no copy."""
    try:
        found = json.loads(data)
        return Copy(str(found["log"]), Linked(int(found["seq"]), str(found["event"]), bytes.fromhex(found["hash"])))
    except (ValueError, KeyError, TypeError):
        return None


@dataclass(slots=True)
class Comparison:
    """Feed it all copies in the order of the log, each with what the database has, then `finish`."""

    copies: int = 0
    differences: list[str] = field(default_factory=list)
    _last: dict[str, int] = field(default_factory=dict)

    @property
    def logs(self) -> int:
        return len(self._last)

    def take(self, copies: Iterable[Copy | None], stored: Mapping[Name, Linked], erased: frozenset[str]) -> None:
        """`erased`: logs whose events the service has removed with their organizations."""
        for copy in copies:
            if copy is None:
                self._differ("an entry of the group is no copy of an event")
                continue
            self.copies += 1
            last = self._last.get(copy.log)
            if last is not None and copy.linked.seq > last + 1:
                self._differ(f"{copy.log}: events {last + 1} to {copy.linked.seq - 1} are not in the group")
            self._last[copy.log] = max(copy.linked.seq, last or 0)
            kept = stored.get(copy.name)
            if kept is None and copy.log not in erased:
                self._differ(f"{copy.log}: event {copy.linked.seq} is not in the database")
            elif kept is not None and kept != copy.linked:
                self._differ(f"{copy.log}: event {copy.linked.seq} is another one in the database")

    def finish(self, newest: Mapping[str, int], waiting: Iterable[Name]) -> None:
        """`newest`: the last event of each log in the database. `waiting`: events that are still to be copied."""
        uncopied = set(waiting)
        for log, seq in newest.items():
            missing = [each for each in range(self._last.get(log, 0) + 1, seq + 1) if (log, each) not in uncopied]
            if missing:
                self._differ(f"{log}: events {missing[0]} to {missing[-1]} are not in the group")

    def _differ(self, what: str) -> None:
        if len(self.differences) < DIFFERENCES_MAX:
            self.differences.append(what)
