"""Everything that the public status is made of, read in one go."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.status.incidents import Told
from quorate_api.status.repository import StatusRepository
from quorate_api.status.rules import DaySum, Sample
from quorate_api.telemetry.windows import DAY_S, HOUR_S


@dataclass(frozen=True, slots=True)
class Snapshot:
    at: datetime
    samples: list[Sample]
    days: list[DaySum]
    incidents: list[Told]


async def read(engine: AsyncEngine) -> Snapshot:
    now = datetime.now(UTC)
    today_s = int(now.timestamp()) // DAY_S * DAY_S
    recent_s = (int(now.timestamp()) // HOUR_S - 24) * HOUR_S
    async with engine.connect() as connection:
        found = StatusRepository(connection)
        return Snapshot(
            now,
            await found.samples(),
            await found.days(today_s - (limits.STATUS_DAYS - 1) * DAY_S, recent_s),
            await found.incidents(now - timedelta(days=limits.STATUS_DAYS)),
        )
