"""A value that is read from the database once in some seconds, however many ask for it."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import structlog
from sqlalchemy.exc import SQLAlchemyError

log = structlog.get_logger(__name__)

Value = TypeVar("Value")


class Held(Generic[Value]):
    """The newest value. While the database is away, the last one stays, and `answers` is false."""

    def __init__(self, read: Callable[[], Awaitable[Value]], kept_s: float, read_s: float) -> None:
        """`read` raises where the database is away. It is given up after `read_s`."""
        self._read = read
        self.kept_s, self.read_s = kept_s, read_s
        self._turn = asyncio.Lock()
        self._due_s = 0.0
        self._last: Value | None = None
        self.answers = False

    async def seen(self) -> Value | None:
        """None: nothing was read since the start."""
        async with self._turn:
            if time.monotonic() >= self._due_s:
                await self._renew()
                # After a failure too: those who ask during an outage do not all wait for the database.
                self._due_s = time.monotonic() + self.kept_s
            return self._last

    def forget(self) -> None:
        """The next answer is read anew."""
        self._due_s = 0.0

    async def _renew(self) -> None:
        try:
            async with asyncio.timeout(self.read_s):
                self._last = await self._read()
            self.answers = True
        except (SQLAlchemyError, OSError, TimeoutError) as error:
            log.warning("a held value is not read anew", error=(str(error) or type(error).__name__).splitlines()[0])
            self.answers = False
