"""(e) Hours that are over are summed up and judged, so that no query reads a group's whole life. Later they are packed.

`TotalsRepository` marks hours for this. A mark is held until the end of a transaction, and so is nobody else's.
"""

import time

from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.database.scope import EveryOrganization
from quorate_api.packed.repository import PackedRepository
from quorate_api.sla.hours import judge_hours
from quorate_api.telemetry.plausible import kept_from_s
from quorate_api.telemetry.windows import HOUR_S
from quorate_api.totals.repository import TotalsRepository
from quorate_api.usage.repository import UsageRepository


async def roll_up(engine: AsyncEngine, now_s: float | None = None) -> int:
    """One pass: all hours that are due. Returns their number. Several workers may run it at once."""
    before_s = int((now_s or time.time()) - limits.ROLL_SETTLE_S - HOUR_S)
    total = 0
    while True:
        async with engine.begin() as connection:
            scope = EveryOrganization(connection, "hours of all organizations are summed up and judged alike")
            hours = await TotalsRepository(scope).roll(before_s, limits.ROLL_HOURS_MAX)
            await judge_hours(scope, hours, before_s)
        total += len(hours)
        if not hours:
            return total


async def pack_hours(engine: AsyncEngine, now_s: float | None = None) -> int:
    """One pass: all hours that are summed up and old enough. Returns their number. Several workers may run it."""
    now_s = now_s or time.time()
    before_s = int(now_s - limits.PACK_AGE_S - HOUR_S)
    total = 0
    while True:
        async with engine.begin() as connection:
            scope = EveryOrganization(connection, "hours of all organizations are packed alike")
            totals = TotalsRepository(scope)
            hours = await totals.unpacked(kept_from_s(now_s), before_s, limits.PACK_HOURS_MAX)
            free = await totals.hold(hours)
            windows = await UsageRepository(scope).take(free)
            await PackedRepository(scope).store(windows, {group_id: owner for (group_id, _), owner in hours.items()})
            await totals.note_packed(free)
        total += len(free)
        if not free:
            return total
