"""(d) The month's close: an invoice for every organization that owes something, and credits for missed SLAs."""

from datetime import datetime, timedelta
from uuid import UUID

import structlog
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.billing import close as billing
from quorate_api.billing.issuer import Issuer
from quorate_api.database.scope import Scope
from quorate_api.months.calendar import month_begin
from quorate_api.observability import counters
from quorate_api.worker.repository import WorkerRepository
from quorate_api.worker.steady import took_too_long

log = structlog.get_logger(__name__)


async def close_months(
    engine: AsyncEngine, issuer: Issuer, now: datetime, delay_s: float = limits.MONTH_CLOSE_DELAY_S
) -> int:
    """Close all months that ended `delay_s` ago or earlier. Returns the number of documents. Idempotent."""
    until = month_begin(now - timedelta(seconds=delay_s))
    async with engine.connect() as connection:
        organizations = await WorkerRepository(connection).to_close(until)
    issued = 0
    for organization_id in organizations:
        try:
            async with engine.begin() as connection:
                scope = Scope(connection, organization_id)
                await scope.renew()
                made = await billing.close_months(scope, issuer, until)
        except (OperationalError, InterfaceError) as error:
            if not took_too_long(error):
                raise  # PostgreSQL is away for every organization
            note_failure("months not closed", organization_id)
            continue
        except Exception:  # one organization's error does not delay the others' invoices; its close is tried again
            note_failure("months not closed", organization_id)
            continue
        if made:
            log.info("closed", organization_id=str(organization_id), documents=made)
        issued += made
    return issued


def note_failure(what: str, organization_id: UUID) -> None:
    counters.close_failures.add(1)
    log.exception(what, organization_id=str(organization_id))
