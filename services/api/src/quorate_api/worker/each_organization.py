"""Work on the documents of organizations, each in a transaction of its own, a few at once."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from uuid import UUID

import structlog
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.database.scope import Scope
from quorate_api.observability import counters
from quorate_api.tasks import end_task
from quorate_api.worker.steady import took_too_long

log = structlog.get_logger(__name__)


async def issue(
    engine: AsyncEngine, organizations: Iterable[UUID], what: str, work: Callable[[Scope], Awaitable[int]]
) -> int:
    """Returns the number of documents that `work` issued. `what`: the work that was done to months, for logs.

    One organization's error does not delay the others' documents; its work is tried again by the next pass.
    """
    waiting = iter(organizations)

    async def in_turn() -> int:
        return sum([await _issue(engine, each, what, work) for each in waiting])

    tasks = [asyncio.create_task(in_turn()) for _ in range(limits.ORGANIZATIONS_AT_ONCE)]
    try:
        return sum(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            await end_task(task)


async def _issue(engine: AsyncEngine, organization_id: UUID, what: str, work: Callable[[Scope], Awaitable[int]]) -> int:
    try:
        async with engine.begin() as connection:
            scope = Scope(connection, organization_id)
            await scope.renew()
            made = await work(scope)
    except (OperationalError, InterfaceError) as error:
        if not took_too_long(error):
            raise  # PostgreSQL is away for every organization
        _note_failure(what, organization_id)
        return 0
    except Exception:
        _note_failure(what, organization_id)
        return 0
    if made:
        log.info(what, organization_id=str(organization_id), documents=made)
    return made


def _note_failure(what: str, organization_id: UUID) -> None:
    counters.close_failures.add(1)
    log.exception(f"months not {what}", organization_id=str(organization_id))
