"""Each fault that stops appends makes exactly the minutes bad that a client saw.

Two groups are appended to all the time, by the SDK. Faults come one after the other, each within a minute of its own.
Then minutes in which the clients saw no acknowledgement are compared with those judged bad.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

import httpx2

from quorate_harness.customer import Customer, Refused
from quorate_harness.figures import Figure
from quorate_harness.fleet import MeasurementFailed
from quorate_local import Stack
from quorate_local.display import Display
from quorate_sla import apart
from quorate_sla.clients import Program
from quorate_sla.faults import OF_NETWORKS, OF_PROCESSES, QUICK, Fault, Scene

RATE_PER_S = 50
MINUTE_S = 60
FAULT_AT_S = 15  # seconds after the begin of a minute
FAULT_S = 8.0
SEEN_MS = 250.0  # a shorter pause may be the client's own
OUTAGE = "availability"  # slow appends, which miss another clause, are acked all the same
JUDGED_TIMEOUT_S = 400
ACTIVE_TIMEOUT_S = 90
POLL_S = 1.0
SLA = {"replication_degree": 3, "request_size_bytes": 64, "rate_per_s": 200, "retention_bytes": 32 << 20}


@dataclass(frozen=True)
class Watched:
    """A group, and what its client saw: milliseconds without an acknowledgement, by the begin of the minute."""

    durability: str
    group_id: str
    process: subprocess.Popen[str]
    seen_ms: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """A minute of a group. `judged`: the clauses that it missed."""

    fault: str
    durability: str
    minute_s: int
    seen_ms: float
    judged: tuple[str, ...]

    @property
    def is_seen(self) -> bool:
        return self.seen_ms > SEEN_MS

    @property
    def is_blind(self) -> bool:
        return self.is_seen and OUTAGE not in self.judged

    @property
    def is_wrong(self) -> bool:
        """Between a tenth and a quarter of a second, the client cannot tell whose pause it was."""
        return self.seen_ms == 0 and OUTAGE in self.judged


def measure(stack: Stack, customer: Customer, display: Display, quick: bool) -> list[Figure]:
    faults = OF_PROCESSES | (OF_NETWORKS if apart.is_inside() else {})
    if not apart.is_inside():
        display.line(f"    without cut networks: {apart.missing() or 'this process is in no network of its own'}")
    names = tuple(name for name in faults if not quick or name in QUICK)
    watched = [_watch(customer, durability) for durability in ("in_memory", "persistent")]
    first_s = _minute(time.time()) + MINUTE_S
    try:
        chosen = {name: faults[name] for name in names}
        minutes = _break_all(Scene(stack, customer, watched[1].group_id), watched, chosen, display)
        for each in watched:
            each.seen_ms.update(_seen(each.process))
    finally:
        for each in watched:
            each.process.kill()
    last_s = _minute(time.time()) - MINUTE_S
    rows = [row for each in watched for row in _rows(customer, each, minutes, first_s, last_s)]
    for row in rows:
        if row.is_seen or row.judged:
            told = f"{row.seen_ms / 1_000:.1f} s seen, judged: {', '.join(row.judged) or 'good'}"
            display.line(f"    {row.fault:<28} {row.durability:<10} {told}")
    return figures(rows, names)


def figures(rows: list[Row], names: tuple[str, ...]) -> list[Figure]:
    blind = [row for row in rows if row.is_blind]
    wrong = [row for row in rows if row.is_wrong]
    seen = sum(row.is_seen for row in rows)
    note = f"{len(names)} faults of {FAULT_S:.0f} s on two groups, {seen} minutes of {len(rows)} seen by clients"
    blind_note = "; ".join(sorted({f"{row.fault} ({row.durability})" for row in blind})) or note
    wrong_note = "; ".join(sorted({f"{row.fault} ({row.durability})" for row in wrong})) or note
    return [
        Figure("sla_blind_minutes", len(blind), "minutes", 0, note=blind_note),
        Figure("sla_unseen_bad_minutes", len(wrong), "minutes", 0, note=wrong_note),
        Figure("sla_seen_minutes", seen, "minutes", 1, more_is_better=True, note=note),
    ]


def _watch(customer: Customer, durability: str) -> Watched:
    group_id = customer.create_group(f"watched-{durability.replace('_', '-')}", SLA | {"durability": durability})["id"]
    shortest_ms = 2 * 1_000 / RATE_PER_S + SEEN_MS / 2
    program = Program("watcher", "python", group_id)
    process = program.start(customer, RATE_PER_S, shortest_ms, is_apart=apart.is_inside())
    assert process.stdout is not None, "it has a pipe"
    if process.stdout.readline().strip() != "watching":
        raise MeasurementFailed("a client could not begin")
    return Watched(durability, group_id, process)


def _break_all(scene: Scene, watched: list[Watched], faults: dict[str, Fault], display: Display) -> dict[int, str]:
    """Returns the fault of each minute that had one."""
    minutes: dict[int, str] = {}
    for name, fault in faults.items():
        _until_active(scene.customer, watched)
        at_s = _minute(time.time()) + MINUTE_S + FAULT_AT_S
        time.sleep(at_s - time.time())
        minutes[at_s - FAULT_AT_S] = name
        with fault(scene):
            time.sleep(FAULT_S)
        display.line(f"    {name}, {datetime.fromtimestamp(at_s, UTC):%H:%M:%S}")
    _until_active(scene.customer, watched)
    # The last fault's minute, and the one after it, are over.
    time.sleep(max(0.0, max(minutes) + 2 * MINUTE_S + 1 - time.time()))
    return minutes


def _until_active(customer: Customer, watched: list[Watched]) -> None:
    deadline = time.monotonic() + ACTIVE_TIMEOUT_S
    for each in watched:
        while not _is_active(customer, each):
            if time.monotonic() > deadline:
                raise MeasurementFailed(f"a group is not active {ACTIVE_TIMEOUT_S} s after a fault")
            time.sleep(POLL_S)


def _is_active(customer: Customer, watched: Watched) -> bool:
    try:
        return str(customer.get(f"/v1/groups/{watched.group_id}")["status"]) == "active"
    except (Refused, httpx2.HTTPError):  # the API's database is back for a moment only
        return False


def _seen(process: subprocess.Popen[str]) -> dict[int, float]:
    process.terminate()
    out, _ = process.communicate(timeout=ACTIVE_TIMEOUT_S)
    return by_minute(json.loads(out))


def by_minute(spans_ms: list[list[float]]) -> dict[int, float]:
    """Milliseconds of the spans in each minute, by its begin."""
    found: dict[int, float] = {}
    for begin_ms, end_ms in spans_ms:
        minute_s = _minute(begin_ms / 1_000)
        while minute_s * 1_000 < end_ms:
            part = min(end_ms, (minute_s + MINUTE_S) * 1_000) - max(begin_ms, minute_s * 1_000)
            found[minute_s] = found.get(minute_s, 0.0) + part
            minute_s += MINUTE_S
    return found


def _rows(customer: Customer, watched: Watched, minutes: dict[int, str], first_s: int, last_s: int) -> Iterator[Row]:
    judged = _judged(customer, watched.group_id, last_s)
    for minute_s in range(first_s, last_s, MINUTE_S):
        fault = minutes.get(minute_s) or minutes.get(minute_s - MINUTE_S, "none")
        yield Row(fault, watched.durability, minute_s, watched.seen_ms.get(minute_s, 0.0), judged.get(minute_s, ()))


def _judged(customer: Customer, group_id: str, last_s: int) -> dict[int, tuple[str, ...]]:
    """The clauses that each bad minute missed, once the minutes until then are judged."""
    deadline = time.monotonic() + JUDGED_TIMEOUT_S
    # Telemetry of the last minute is there a few seconds after its end, also where a data store was away.
    time.sleep(max(0.0, last_s + 2 * MINUTE_S - time.time()))
    found: dict[int, tuple[str, ...]] = {}
    cursor: str | None = None
    while True:
        query = {"limit": "200"} | ({"cursor": cursor} if cursor else {})
        page = customer.get(f"/v1/groups/{group_id}/sla/bad-minutes", query)
        for each in page["items"]:
            found[int(datetime.fromisoformat(each["at"]).timestamp())] = tuple(each["missed"])
        cursor = page["next_cursor"]
        if cursor is None:
            return found
        if time.monotonic() > deadline:
            raise MeasurementFailed(f"bad minutes are not listed within {JUDGED_TIMEOUT_S} s")


def _minute(at_s: float) -> int:
    return int(at_s) // MINUTE_S * MINUTE_S
