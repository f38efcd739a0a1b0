"""(n) The log of admissions is kept for 90 days."""

from datetime import UTC, datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.admissions.repository import OldAdmissions
from quorate_api.database.scope import EveryOrganization

REASON = "admissions of all organizations are forgotten alike"


async def forget_admissions(engine: AsyncEngine, now: datetime | None = None) -> None:
    before = (now or datetime.now(UTC)) - timedelta(seconds=limits.ADMISSIONS_KEPT_S)
    async with engine.begin() as connection:
        await OldAdmissions(EveryOrganization(connection, REASON)).forget(before)
