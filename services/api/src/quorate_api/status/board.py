"""What the status page shows, read from the database once in some seconds, however many ask."""

import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import structlog
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.status.incidents import Told
from quorate_api.status.repository import StatusRepository
from quorate_api.status.rules import DaySum, Sample
from quorate_api.telemetry.windows import DAY_S, HOUR_S

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Snapshot:
    at: datetime
    samples: list[Sample]
    days: list[DaySum]
    incidents: list[Told]


class Board:
    """The newest snapshot. While the database is away, the last one stays, and `answers` is false."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._turn = asyncio.Lock()
        self._due_s = 0.0
        self._last: Snapshot | None = None
        self.answers = False

    async def seen(self) -> Snapshot | None:
        """None: nothing was read since the start."""
        async with self._turn:
            if time.monotonic() >= self._due_s:
                await self._read()
                # After a failure too: those who ask during an outage do not all wait for the database.
                self._due_s = time.monotonic() + limits.STATUS_CACHED_S
            return self._last

    def forget(self) -> None:
        """The next answer is read anew."""
        self._due_s = 0.0

    async def _read(self) -> None:
        now = datetime.now(UTC)
        today_s = int(now.timestamp()) // DAY_S * DAY_S
        recent_s = (int(now.timestamp()) // HOUR_S - 24) * HOUR_S
        try:
            async with asyncio.timeout(limits.STATUS_READ_S), self._engine.connect() as connection:
                found = StatusRepository(connection)
                self._last = Snapshot(
                    now,
                    await found.samples(),
                    await found.days(today_s - (limits.STATUS_DAYS - 1) * DAY_S, recent_s),
                    await found.incidents(now - timedelta(days=limits.STATUS_DAYS)),
                )
            self.answers = True
        except (SQLAlchemyError, OSError, TimeoutError) as error:
            log.warning("the status cannot be read", error=(str(error) or type(error).__name__).splitlines()[0])
            self.answers = False
