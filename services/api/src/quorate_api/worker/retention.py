"""(f) Days of usage that are settled: their windows go to the archive, if there is one, and are removed.

Sums and judged hours of a day stay, in one row a group. Each step can be repeated.
"""

import time
from pathlib import Path

import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.database.scope import EveryOrganization
from quorate_api.sla.repository import SlaRepository
from quorate_api.telemetry.plausible import kept_from_s
from quorate_api.totals.repository import HOUR_S, TotalsRepository
from quorate_api.usage.repository import UsageRepository
from quorate_api.worker import archive

log = structlog.get_logger(__name__)

_REASON = "days of all organizations are settled alike"


async def settle_days(engine: AsyncEngine, archive_dir: Path | None, now_s: float | None = None) -> int:
    """One pass over the days whose windows are no longer kept. Returns the number of days that were removed.

    A day with hours that are still to be summed up or judged is left for the next pass.
    """
    # An hour later than ingest refuses them: its transactions have ended.
    before_s = kept_from_s((now_s or time.time()) - HOUR_S)
    async with engine.begin() as connection:
        days = await UsageRepository(EveryOrganization(connection, _REASON)).days()
    settled = 0
    for day_s in days:
        if day_s >= before_s or await _is_open(engine, day_s):
            continue
        if archive_dir is not None:
            await archive.write_day(engine, day_s, archive_dir)
        await _fold(engine, day_s)
        async with engine.begin() as connection:
            scope = EveryOrganization(connection, _REASON)
            await TotalsRepository(scope).forget_hours(day_s)
            await UsageRepository(scope).drop_day(day_s)
        settled += 1
        log.info("a day of usage windows was removed", day_s=day_s, archived=archive_dir is not None)
    return settled


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
