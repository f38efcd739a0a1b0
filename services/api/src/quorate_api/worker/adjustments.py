"""(i) Adjustments: a further credit note for each closed month that a correction or late telemetry has changed."""

import structlog
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api.adjustments.adjust import adjust_months
from quorate_api.billing.issuer import Issuer
from quorate_api.database.scope import EveryOrganization, Scope
from quorate_api.months.repository import MonthRepository
from quorate_api.worker.month_close import note_failure
from quorate_api.worker.steady import took_too_long

log = structlog.get_logger(__name__)


async def adjust_closed_months(engine: AsyncEngine, issuer: Issuer) -> int:
    """One pass. Returns the number of credit notes. Idempotent; several workers may run it at once."""
    async with engine.connect() as connection:
        scope = EveryOrganization(connection, "changed months of all organizations are adjusted alike")
        organizations = await MonthRepository(scope).organizations_changed()
    issued = 0
    for organization_id in organizations:
        try:
            async with engine.begin() as connection:
                own = Scope(connection, organization_id)
                await own.renew()
                made = await adjust_months(own, issuer)
        except (OperationalError, InterfaceError) as error:
            if not took_too_long(error):
                raise  # PostgreSQL is away for every organization
            note_failure("months not adjusted", organization_id)
            continue
        except Exception:  # one organization's error does not delay the others' credits; its months stay noted
            note_failure("months not adjusted", organization_id)
            continue
        if made:
            log.info("adjusted", organization_id=str(organization_id), documents=made)
        issued += made
    return issued
