"""(i) Adjustments: a further credit note for each closed month that a correction or late telemetry has changed."""

from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api.adjustments.adjust import adjust_months
from quorate_api.billing.issuer import Issuer
from quorate_api.database.scope import EveryOrganization
from quorate_api.months.repository import MonthRepository
from quorate_api.worker.each_organization import issue


async def adjust_closed_months(engine: AsyncEngine, issuer: Issuer) -> int:
    """One pass. Returns the number of credit notes. Idempotent; several workers may run it at once.

    The months of an organization that failed stay noted.
    """
    async with engine.connect() as connection:
        scope = EveryOrganization(connection, "changed months of all organizations are adjusted alike")
        organizations = await MonthRepository(scope).organizations_changed()
    return await issue(engine, organizations, "adjusted", lambda own: adjust_months(own, issuer))
