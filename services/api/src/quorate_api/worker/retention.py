"""(f) Days of usage that are settled: their windows go to the archive, if there is one, and are removed.

Sums and judged hours of a day stay, in one row a group. Each step can be repeated.
"""

import time
from pathlib import Path

import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.database.scope import EveryOrganization
from quorate_api.outside.repository import OutsideRepository
from quorate_api.packed.repository import PackedRepository
from quorate_api.settled.repository import SettledRepository
from quorate_api.sla.repository import SlaRepository
from quorate_api.telemetry.plausible import kept_from_s
from quorate_api.telemetry.windows import DAY_S, HOUR_S
from quorate_api.totals.repository import TotalsRepository
from quorate_api.usage.repository import UsageRepository
from quorate_api.worker import archive

log = structlog.get_logger(__name__)

_REASON = "days of all organizations are settled alike"


async def settle_days(engine: AsyncEngine, archive_dir: Path | None, now_s: float | None = None) -> int:
    """One pass over the days whose windows are no longer kept, oldest first. Returns the number of settled days.

    It ends at a day with hours that are still to be summed up or judged. The day after it is judged first, too: a gap
    in the telemetry over midnight is judged by windows of both. One worker settles days at a time.
    """
    # An hour later than ingest refuses them: its transactions have ended.
    before_s = kept_from_s((now_s or time.time()) - HOUR_S)
    settled = 0
    async with engine.begin() as guard:
        if not await UsageRepository(EveryOrganization(guard, _REASON)).lock_days():
            return 0
        # In a transaction of its own: the guard holds no table that is dropped.
        async with engine.begin() as connection:
            scope = EveryOrganization(connection, _REASON)
            await SettledRepository(scope).forget()
            partitions = await UsageRepository(scope).days()
            hours = await SlaRepository(scope).days_of_hours(before_s)
        for day_s in sorted({*partitions, *hours}):
            if day_s >= before_s:
                break
            if any([await _is_open(engine, day_s), await _is_open(engine, day_s + DAY_S)]):
                break
            if archive_dir is not None and day_s in partitions:
                await archive.write_day(engine, day_s, archive_dir)
            await _settle(engine, day_s)
            settled += 1
    return settled


async def _settle(engine: AsyncEngine, day_s: int) -> None:
    await _fold(engine, day_s)
    async with engine.begin() as connection:
        scope = EveryOrganization(connection, _REASON)
        await TotalsRepository(scope).forget_hours(day_s)
        await PackedRepository(scope).forget(day_s)
        await OutsideRepository(connection).forget(day_s)
        await SettledRepository(scope).settle(day_s + DAY_S)
        await UsageRepository(scope).drop_day(day_s)
    log.info("a day of usage windows was removed", day_s=day_s)


async def _is_open(engine: AsyncEngine, day_s: int) -> bool:
    async with engine.begin() as connection:
        scope = EveryOrganization(connection, _REASON)
        unjudged = await SlaRepository(scope).mark_unjudged(day_s)
        return unjudged > 0 or await TotalsRepository(scope).is_dirty(day_s)


async def _fold(engine: AsyncEngine, day_s: int) -> None:
    while True:
        async with engine.begin() as connection:
            scope = EveryOrganization(connection, _REASON)
            if await SlaRepository(scope).fold(day_s, limits.RETENTION_GROUPS_MAX) == 0:
                return
