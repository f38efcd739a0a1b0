"""Starting: a bounded wait for missing dependencies, which names them."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Sequence

from sqlalchemy import create_engine, make_url, pool
from sqlalchemy.exc import OperationalError

from quorate_api import limits
from quorate_api.health.schemas import Dependency

Probe = Callable[[], Awaitable[Dependency]]


async def wait_for(probes: Sequence[Probe], wait_s: float) -> bool:
    """Whether every dependency answers within `wait_s`. Names the missing ones on stderr every few seconds."""
    began = time.monotonic()
    reported = -limits.START_PROGRESS_S
    while True:
        missing = [found for found in await asyncio.gather(*(probe() for probe in probes)) if found.state == "missing"]
        waited = time.monotonic() - began
        if not missing:
            return True
        if waited >= wait_s:
            _say("stopped waiting: " + "; ".join(found.detail for found in missing))
            return False
        if waited - reported >= limits.START_PROGRESS_S:
            reported = waited
            _say(f"waiting ({waited:.0f} of {wait_s:.0f} s): " + "; ".join(found.detail for found in missing))
        await asyncio.sleep(min(0.25, wait_s))


def wait_for_server(database_url: str, wait_s: float) -> bool:
    """For `migrate`: waits until the server answers, with any schema."""

    async def probe() -> Dependency:
        engine = create_engine(
            make_url(database_url).set(drivername="postgresql+psycopg"),
            poolclass=pool.NullPool,
            connect_args={"connect_timeout": 5},
        )
        try:
            with engine.connect():
                return Dependency(name="postgresql", state="ok", detail="")
        except OperationalError as error:
            reason = str(error.orig).splitlines()[0]
            return Dependency(name="postgresql", state="missing", detail=f"PostgreSQL does not answer: {reason}")
        finally:
            engine.dispose()

    return asyncio.run(wait_for([probe], wait_s))


def _say(text: str) -> None:
    sys.stderr.write(f"quorate-api: {text}\n")
    sys.stderr.flush()
