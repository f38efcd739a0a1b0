"""(l) Organizations that close: their groups are deleted when the time to reopen is over, and people's data later."""

from datetime import UTC, datetime, timedelta

import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.closure.repository import ClosureRepository
from quorate_api.database.scope import EveryOrganization
from quorate_api.groups.repository import GroupRepository

log = structlog.get_logger(__name__)

REASON = "organizations close and are erased alike"


async def close_organizations(engine: AsyncEngine, now: datetime | None = None) -> int:
    """One pass. Returns the number of organizations that were closed or erased."""
    now = now or datetime.now(UTC)
    async with engine.begin() as connection:
        repository = ClosureRepository(EveryOrganization(connection, REASON))
        to_close = await repository.to_close(now)
        to_erase = await repository.to_erase(now - timedelta(seconds=limits.CLOSED_KEPT_S))
    done = 0
    for organization_id in to_close:
        async with engine.begin() as connection:
            every = EveryOrganization(connection, REASON)
            repository = ClosureRepository(every)
            if not await repository.close(organization_id, now):
                continue
            for group_id in await repository.groups(organization_id):
                await GroupRepository(every).request_deletion(group_id, now)  # the reconciler goes on with it
        log.info("organization closed", organization_id=str(organization_id))
        done += 1
    for organization_id in to_erase:
        async with engine.begin() as connection:
            erased = await ClosureRepository(EveryOrganization(connection, REASON)).erase(organization_id)
        log.info("organization erased", organization_id=str(organization_id), erased=erased)
        done += erased
    return done
