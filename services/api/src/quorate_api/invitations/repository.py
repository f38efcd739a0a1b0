"""Invitations of one organization, and the one that a link is for."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from quorate_api.database.scope import Scope
from quorate_api.database.tables import invitations


class InvitationRepository:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def replace(self, **values: Any) -> None:
        """Also in the place of an earlier one to the same address."""
        statement = self._scope.upsert(invitations, **values)
        changed = {name: value for name, value in values.items() if name != "email"}
        await self._scope.connection.execute(
            statement.on_conflict_do_update(index_elements=["organization_id", "email"], set_=changed)
        )

    async def all_of(self, now: datetime) -> list[Row[Any]]:
        """Invitations that may still be accepted, newest first."""
        statement = self._scope.select(invitations).where(invitations.c.expires_at > now)
        return list((await self._scope.connection.execute(statement.order_by(invitations.c.created_at.desc()))).all())

    async def get(self, invitation_id: UUID) -> Row[Any] | None:
        statement = self._scope.select(invitations).where(invitations.c.id == invitation_id)
        return (await self._scope.connection.execute(statement)).one_or_none()

    async def delete(self, invitation_id: UUID) -> bool:
        statement: Any = self._scope.delete(invitations).where(invitations.c.id == invitation_id)
        found = await self._scope.connection.execute(statement.returning(invitations.c.id))
        return found.first() is not None


async def by_link(connection: AsyncConnection, token_hmac: bytes) -> Row[Any] | None:
    """The invitation, by the secret of its link: whoever opens it is in no organization yet."""
    columns = ("id", "organization_id", "organization_name", "email", "role", "expires_at")
    found = func.find_invitation(token_hmac).table_valued(*columns)
    return (await connection.execute(select(found))).one_or_none()
