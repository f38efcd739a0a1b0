"""Bytes that a group's telemetry takes in the database, and the worker's time to pack it."""

from __future__ import annotations

import time
from dataclasses import dataclass

from quorate_api.limits import PACK_AGE_S, USAGE_DAYS_KEPT
from quorate_harness.fleet import MeasurementFailed
from quorate_harness.processor import tree_s
from quorate_scale.world import CUSTOMERS, DEGREE, HOUR_S, MONTHS, WINDOWS_GROUPS, World

KEPT = (
    "usage_log_days", "usage_days", "usage_hours", "settled_totals", "settled_logs", "sla_days", "sla_hours",
    "billed_quantities",
)  # fmt: skip
PACKED_HOURS = (USAGE_DAYS_KEPT + 1) * 24
# Just before an hour is packed, its minutes are there and those since. Rows that were removed make room at the next
# vacuum, a minute or two later. By then the half of these may have been written again.
UNPACKED_MINUTES = (60 + PACK_AGE_S // 60) * 3 // 2
TIMEOUT_S = 1_200
POLL_S = 0.5


@dataclass(frozen=True)
class Sizes:
    """`kept_bytes`: sums of hours and days, of all groups. `window_bytes`: of one minute of one replica, as a row.
    `packed_bytes`: of one group's hour. `pack_ms`: processor time to pack it, in worker and PostgreSQL."""

    groups: int
    kept_bytes: int
    window_bytes: float
    packed_bytes: float
    pack_ms: float

    @property
    def per_group_month(self) -> float:
        """Bytes of a group that has all months, with the minutes of all replicas as long as they are kept."""
        minutes = self.window_bytes * UNPACKED_MINUTES * DEGREE + self.packed_bytes * PACKED_HOURS
        return (self.kept_bytes / self.groups + minutes) / MONTHS


def pack(world: World) -> float:
    """Let the worker pack all hours that are due. Returns the milliseconds of processor time of an hour of a group."""
    with world.connect() as connection:
        before_s = int(time.time()) - PACK_AGE_S - HOUR_S
        unpacked = "SELECT count(*) FROM usage_hours WHERE NOT packed AND hour_s < %s"
        found = connection.execute(unpacked, [before_s]).fetchone()
        assert found is not None, "a count has a row"
        if found[0] < CUSTOMERS * WINDOWS_GROUPS * (PACKED_HOURS - 48):
            raise MeasurementFailed(f"only {found[0]} hours are to be packed")
        postgres_before = tree_s(world.postgres_pid)
        world.stack.restart("worker")
        try:
            _wait(world, unpacked, before_s)
            spent_s = tree_s(world.stack.processes()["worker"].identity.pid) + tree_s(world.postgres_pid)
        finally:
            world.stack.crash("worker")
        connection.execute("VACUUM ANALYZE")
    return (spent_s - postgres_before) * 1_000 / int(found[0])


def _wait(world: World, unpacked: str, before_s: int) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    with world.connect() as connection:
        while connection.execute(unpacked, [before_s]).fetchone() != (0,):
            if time.monotonic() > deadline:
                raise MeasurementFailed(f"the worker had not packed all hours after {TIMEOUT_S} s")
            time.sleep(POLL_S)


def measure(world: World, pack_ms: float) -> Sizes:
    with world.connect() as connection:
        connection.execute("VACUUM ANALYZE")
        kept = connection.execute(
            "SELECT sum(pg_total_relation_size(relid)) FROM pg_stat_user_tables WHERE relname = ANY (%s)", [list(KEPT)]
        ).fetchone()
        packed = connection.execute(
            "SELECT pg_total_relation_size('packed_hours'), count(*) FROM packed_hours"
        ).fetchone()
    assert kept is not None
    assert packed is not None
    assert packed[1] > CUSTOMERS * WINDOWS_GROUPS, "hours were packed"
    return Sizes(world.count, int(kept[0]), world.window_bytes, packed[0] / packed[1], pack_ms)
