"""(k) Reports of probers that came after their hours were judged: groups that they may be about are judged again."""

import time

from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.database.scope import EveryOrganization
from quorate_api.outside.repository import OutsideRepository
from quorate_api.sla.hours import judge_hours
from quorate_api.sla.repository import SlaRepository
from quorate_api.telemetry.windows import HOUR_S


async def judge_late_looks(engine: AsyncEngine, now_s: float | None = None) -> int:
    """One pass. Returns the number of hours of groups that were judged again. Several workers may run it at once."""
    before_s = int((now_s or time.time()) - limits.ROLL_SETTLE_S - HOUR_S)
    async with engine.begin() as connection:
        scope = EveryOrganization(connection, "a server has groups of many organizations")
        hours = set()
        for hour_s, servers in (await OutsideRepository(connection).take_late()).items():
            hours |= await SlaRepository(scope).judged_with(hour_s, servers)
        if hours:
            await judge_hours(scope, hours, before_s)
    return len(hours)
