"""Keeps a task of the worker running while its dependencies are absent, however long."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import structlog
from psycopg.errors import QueryCanceled
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from quorate_api import limits
from quorate_api.coordinator.client import CoordinatorUnavailable
from quorate_api.observability import counters

log = structlog.get_logger(__name__)

AWAY = (RedisError, SQLAlchemyError, CoordinatorUnavailable, OSError, TimeoutError)


async def keep_running(name: str, task: Callable[[], Awaitable[object]], *, every_s: float | None = None) -> None:
    """Call `task` for ever: after a failure with backoff and jitter, after a return once `every_s` has passed."""
    delay_s = limits.RETRY_DELAY_S_MIN
    failing = False
    while True:
        began = asyncio.get_running_loop().time()
        try:
            await task()
        except AWAY as error:
            if asyncio.get_running_loop().time() - began > limits.RETRY_DELAY_S_MAX:
                delay_s = limits.RETRY_DELAY_S_MIN  # it worked for a while before it failed
            log.warning("waiting", task=name, error=_line(error), again_in_s=round(delay_s, 1))
            failing = True
            counters.task_failures.add(1, {"quorate.task": name})
            await asyncio.sleep(delay_s * random.uniform(0.5, 1.0))  # noqa: S311 - jitter
            delay_s = min(delay_s * 2, limits.RETRY_DELAY_S_MAX)
            continue
        if failing:
            log.info("works again", task=name)
            failing, delay_s = False, limits.RETRY_DELAY_S_MIN
        await asyncio.sleep(every_s or 0)


def took_too_long(error: BaseException) -> bool:
    """Whether PostgreSQL ended a statement at its time limit: the fault of what was asked, and not an outage."""
    return isinstance(getattr(error, "orig", None), QueryCanceled)


def _line(error: BaseException) -> str:
    return (str(getattr(error, "orig", None) or error) or type(error).__name__).splitlines()[0][:200]
