"""Second factors of people."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from quorate_api.database.tables import recovery_codes, totps


class FactorRepository:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def totp(self, user_id: UUID) -> Row[Any] | None:
        """Confirmed or not."""
        return (await self._connection.execute(select(totps).where(totps.c.user_id == user_id))).one_or_none()

    async def begin_totp(self, user_id: UUID, sealed: bytes, now: datetime) -> None:
        """In the place of one that was begun and not confirmed."""
        values: dict[str, Any] = {"sealed": sealed, "created_at": now, "confirmed_at": None, "last_step": 0}
        statement = insert(totps).values(user_id=user_id, **values)
        await self._connection.execute(statement.on_conflict_do_update(index_elements=["user_id"], set_=values))

    async def use_step(self, user_id: UUID, step: int, confirmed_at: datetime | None = None) -> bool:
        """False: the step was used meanwhile. `confirmed_at`: the authenticator counts from then on."""
        values: dict[str, Any] = {"last_step": step}
        if confirmed_at is not None:
            values["confirmed_at"] = confirmed_at
        statement = update(totps).where(totps.c.user_id == user_id, totps.c.last_step < step)
        used = statement.values(**values).returning(totps.c.user_id)
        return (await self._connection.execute(used)).first() is not None

    async def remove(self, user_id: UUID) -> None:
        await self._connection.execute(delete(totps).where(totps.c.user_id == user_id))
        await self._connection.execute(delete(recovery_codes).where(recovery_codes.c.user_id == user_id))

    async def replace_codes(self, user_id: UUID, code_hmacs: Iterable[bytes]) -> None:
        await self._connection.execute(delete(recovery_codes).where(recovery_codes.c.user_id == user_id))
        rows = [{"user_id": user_id, "code_hmac": each} for each in code_hmacs]
        await self._connection.execute(insert(recovery_codes).values(rows))

    async def use_code(self, user_id: UUID, code_hmacs: Sequence[bytes]) -> bool:
        statement = delete(recovery_codes).where(
            recovery_codes.c.user_id == user_id, recovery_codes.c.code_hmac.in_(code_hmacs)
        )
        return (await self._connection.execute(statement.returning(recovery_codes.c.user_id))).first() is not None

    async def codes_left(self, user_id: UUID) -> int:
        statement = select(func.count()).where(recovery_codes.c.user_id == user_id)
        return int((await self._connection.execute(statement.select_from(recovery_codes))).scalar_one())
