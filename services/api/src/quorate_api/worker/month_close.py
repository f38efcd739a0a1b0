"""(d) The month's close: an invoice for every organization that owes something, and credits for missed SLAs."""

from datetime import datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.billing import close as billing
from quorate_api.billing.issuer import Issuer
from quorate_api.months.calendar import month_begin
from quorate_api.worker.each_organization import issue
from quorate_api.worker.repository import WorkerRepository


async def close_months(
    engine: AsyncEngine, issuer: Issuer, now: datetime, delay_s: float = limits.MONTH_CLOSE_DELAY_S
) -> int:
    """Close all months that ended `delay_s` ago or earlier. Returns the number of documents. Idempotent."""
    until = month_begin(now - timedelta(seconds=delay_s))
    async with engine.connect() as connection:
        organizations = await WorkerRepository(connection).to_close(until)
    return await issue(engine, organizations, "closed", lambda scope: billing.close_months(scope, issuer, until))
