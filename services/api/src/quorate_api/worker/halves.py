"""Work for a batch of organizations, in halves where all together takes too long."""

from collections.abc import Awaitable, Callable
from uuid import UUID

import structlog
from sqlalchemy.exc import OperationalError

from quorate_api.worker.steady import took_too_long

log = structlog.get_logger(__name__)

Organizations = tuple[UUID, ...]


async def by_halves(some: Organizations, work: Callable[[Organizations], Awaitable[int]], what: str) -> int:
    """The sum of what `work` returns. An organization that takes too long alone is logged, and left out."""
    try:
        return await work(some)
    except OperationalError as error:
        if not took_too_long(error):
            raise
        if len(some) == 1:
            log.exception("organization left out", what=what, organization_id=str(some[0]))
            return 0
    half = len(some) // 2
    return await by_halves(some[:half], work, what) + await by_halves(some[half:], work, what)
