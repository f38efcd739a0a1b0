"""A unit of work: the one transaction of a request, and its organization."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from quorate_api.database.scope import Scope


class Work:
    """`async with Work(engine) as work:` commits at the end, rolls back on an exception."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._connection: AsyncConnection | None = None
        self._scope: Scope | None = None

    @property
    def connection(self) -> AsyncConnection:
        assert self._connection is not None, "outside of the transaction"
        return self._connection

    @property
    def scope(self) -> Scope:
        assert self._scope is not None, "no organization was entered"
        return self._scope

    @property
    def has_scope(self) -> bool:
        """Whether an organization was entered."""
        return self._scope is not None

    async def enter(self, organization_id: UUID) -> Scope:
        """From here on the transaction sees this organization's rows."""
        assert self._scope is None or self._scope.organization_id == organization_id, "one organization per request"
        self._scope = Scope(self.connection, organization_id)
        await self._scope.renew()
        return self._scope

    async def leave(self) -> None:
        """Commit, and see no organization from here on."""
        await self.connection.commit()  # row-level security's setting ends with the transaction
        self._scope = None

    @asynccontextmanager
    async def outside(self) -> AsyncIterator[None]:
        """Commit, and release the connection while another service is called."""
        await self.connection.commit()
        await self.connection.close()
        self._connection = None
        try:
            yield
        finally:
            self._connection = await self._engine.connect()
            if self._scope is not None:
                self._scope.connection = self._connection
                await self._scope.renew()

    async def checkpoint(self) -> None:
        """Commit now, so that a later failure undoes only later work."""
        await self.connection.commit()
        if self._scope is not None:
            await self._scope.renew()

    async def __aenter__(self) -> Self:
        self._connection = await self._engine.connect()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        try:
            if error is None:
                await connection.commit()
            else:
                await connection.rollback()
        finally:
            await connection.close()
