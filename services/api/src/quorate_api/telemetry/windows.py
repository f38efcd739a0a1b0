"""A usage window: one server's counts for one group in one minute of one epoch. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace

WINDOW_S = 60
HOUR_S = 3_600
DAY_S = 24 * HOUR_S
HEAD_ROLES = frozenset({"head", "sole"})

Key = tuple[str, int, str, int, int]


@dataclass(frozen=True, slots=True)
class Window:
    """Counters only grow. docs/internals/telemetry.md describes each."""

    group_id: str
    server_id: int
    incarnation: str
    epoch: int
    window_start_s: int
    role: str
    log_epoch: int = 0  # the epoch of the reset that began the log; 0: the group's first
    committed_entries: int = 0
    committed_bytes: int = 0
    first_committed_entries: int = 0
    first_committed_bytes: int = 0
    offered_entries: int = 0
    throttled_entries: int = 0
    throttled_within_sla_entries: int = 0
    within_sla_entries: int = 0
    refused_entries: int = 0
    read_entries: int = 0
    read_bytes: int = 0
    active_ms: int = 0
    paused_ms: int = 0
    from_ms: int = 0
    to_ms: int = 0
    stored_bytes: int = 0
    owed_read_entries: int = 0  # the reservation for reads let them pass here
    late_read_entries: int = 0
    latency_us: dict[int, int] = field(default_factory=dict)
    judged_latency_us: dict[int, int] | None = None  # None: as `latency_us`

    @property
    def key(self) -> Key:
        return (self.group_id, self.server_id, self.incarnation, self.epoch, self.window_start_s)

    @property
    def judged_us(self) -> dict[int, int]:
        """Commit latencies that the SLA counts: bucket → count."""
        return self.latency_us if self.judged_latency_us is None else self.judged_latency_us

    @property
    def is_head(self) -> bool:
        return self.role in HEAD_ROLES


COUNTERS = tuple(item.name for item in fields(Window) if item.type is int or item.type == "int")[4:]
assert COUNTERS[0] == "committed_entries", COUNTERS


def greatest(left: Window, right: Window) -> Window:
    """Merge two reports of one window: the greatest of every counter. Order and repetition do not matter.

    The role comes from the report with the greater progress. Within an epoch it changes only from learner to tail.
    """
    assert left.key == right.key, (left.key, right.key)
    is_same = left.judged_latency_us is None and right.judged_latency_us is None
    return replace(
        max(left, right, key=progress),
        **{name: max(getattr(left, name), getattr(right, name)) for name in COUNTERS},
        latency_us=_greater(left.latency_us, right.latency_us),
        judged_latency_us=None if is_same else _greater(left.judged_us, right.judged_us),
    )


def _greater(left: dict[int, int], right: dict[int, int]) -> dict[int, int]:
    return {bucket: max(left.get(bucket, 0), right.get(bucket, 0)) for bucket in left.keys() | right.keys()}


def progress(window: Window) -> tuple[int, str]:
    """A report's progress. The role's name breaks ties, so that the order of arrival does not matter."""
    return (sum(getattr(window, name) for name in COUNTERS) + sum(window.latency_us.values()), window.role)


def merged(windows: Iterable[Window]) -> list[Window]:
    """One window per key, in the order of keys, so that concurrent upserts lock rows in the same order."""
    found: dict[Key, Window] = {}
    for window in windows:
        known = found.get(window.key)
        found[window.key] = window if known is None else greatest(known, window)
    return [found[key] for key in sorted(found)]
