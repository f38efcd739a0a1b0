"""Bytes of usage and judgements in the database, with indexes, for a group and month."""

from __future__ import annotations

from dataclasses import dataclass

from quorate_api.limits import USAGE_DAYS_KEPT
from quorate_scale.world import CUSTOMERS, MONTHS, WINDOWS_GROUPS, World

KEPT = ("usage_log_days", "usage_days", "usage_hours", "usage_months", "usage_log_months", "sla_days", "sla_hours")
MINUTES_KEPT = (USAGE_DAYS_KEPT + 1) * 24 * 60


@dataclass(frozen=True)
class Sizes:
    """`kept_bytes`: sums of hours and days, of all groups. `window_bytes`: of one minute of one replica."""

    groups: int
    kept_bytes: int
    window_bytes: float

    def per_group_month(self, replicas: int) -> float:
        """Bytes of a group that has all months, with the minutes of as many replicas as long as they are kept."""
        windows = self.window_bytes * MINUTES_KEPT * replicas
        return (self.kept_bytes / self.groups + windows) / MONTHS


def measure(world: World) -> Sizes:
    with world.connect() as connection:
        connection.execute("VACUUM ANALYZE")
        kept = connection.execute(
            "SELECT sum(pg_total_relation_size(relid)) FROM pg_stat_user_tables WHERE relname = ANY (%s)", [list(KEPT)]
        ).fetchone()
        windows = connection.execute(
            "SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree('usage_windows') WHERE isleaf"
        ).fetchone()
        rows = connection.execute("SELECT count(*) FROM usage_windows").fetchone()
    assert kept is not None
    assert windows is not None
    assert rows is not None
    assert rows[0] > CUSTOMERS * WINDOWS_GROUPS, "windows were filled in"
    return Sizes(world.count, int(kept[0]), float(windows[0]) / rows[0])
