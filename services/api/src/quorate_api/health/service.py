"""Every dependency with its state. All are probed at once; each probe takes at most two seconds."""

import asyncio

from redis.asyncio import Redis
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api.coordinator.client import Coordinator, CoordinatorUnavailable
from quorate_api.database.engine import API_ROLE, schema_problem
from quorate_api.health.schemas import Dependency, Readiness

PROBE_TIMEOUT_S = 2.0


async def readiness(engine: AsyncEngine, redis: Redis | None, coordinator: Coordinator) -> Readiness:
    dependencies = list(await asyncio.gather(postgresql(engine, API_ROLE), redis_server(redis), fleet(coordinator)))
    missing = [dependency.name for dependency in dependencies if dependency.state == "missing"]
    status = "unavailable" if "postgresql" in missing else "degraded" if missing else "ok"
    return Readiness(status=status, dependencies=dependencies)


async def postgresql(engine: AsyncEngine, role: str) -> Dependency:
    try:
        async with asyncio.timeout(PROBE_TIMEOUT_S), engine.connect() as connection:
            problem = await schema_problem(connection, role)
    except (SQLAlchemyError, OSError, TimeoutError) as error:
        problem = "it does not answer: " + _first_line(getattr(error, "orig", None) or error)
        if f'role "{role}" does not exist' in problem:
            problem = "it has no schema: run `quorate-api migrate`"
    if problem is None:
        return Dependency(name="postgresql", state="ok", detail="")
    return Dependency(name="postgresql", state="missing", detail=f"PostgreSQL (DATABASE_URL): {problem}")


async def redis_server(redis: Redis | None) -> Dependency:
    consequence = "Live charts and usage wait for it; everything else works."
    if redis is None:
        return Dependency(name="redis", state="missing", detail=f"REDIS_URL is not set. {consequence}")
    try:
        async with asyncio.timeout(PROBE_TIMEOUT_S):
            await redis.ping()
    except (RedisError, OSError, TimeoutError) as error:
        detail = f"Redis (REDIS_URL): it does not answer: {_first_line(error)}. {consequence}"
        return Dependency(name="redis", state="missing", detail=detail)
    return Dependency(name="redis", state="ok", detail="")


async def fleet(coordinator: Coordinator) -> Dependency:
    try:
        await coordinator.health()
    except CoordinatorUnavailable as error:
        detail = f"Coordinator (QUORATE_COORDINATOR_URL): {_first_line(error)}. Groups cannot be created."
        return Dependency(name="coordinator", state="missing", detail=detail)
    return Dependency(name="coordinator", state="ok", detail="")


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:200]
