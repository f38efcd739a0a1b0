"""(e) Hours that are over are summed up and judged, so that no query reads a group's whole life."""

import time

from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.database.scope import EveryOrganization
from quorate_api.sla.hours import judge_hours
from quorate_api.telemetry.windows import HOUR_S
from quorate_api.totals.repository import TotalsRepository


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
