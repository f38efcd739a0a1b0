"""An organization and its members."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, func

from quorate_api.database.scope import Scope
from quorate_api.database.tables import memberships, organizations, users


class OrganizationRepository:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def insert(self, name: str, now: datetime) -> None:
        await self._scope.connection.execute(self._scope.insert(organizations, name=name, created_at=now))

    async def get(self) -> Row[Any]:
        return (await self._scope.connection.execute(self._scope.select(organizations))).one()

    async def add_member(self, user_id: UUID, role: str, now: datetime) -> bool:
        """False if the person is a member already."""
        statement = self._scope.upsert(memberships, user_id=user_id, role=role, created_at=now)
        added = statement.on_conflict_do_nothing().returning(memberships.c.user_id)
        return (await self._scope.connection.execute(added)).first() is not None

    async def members(self) -> list[Row[Any]]:
        """Oldest first, with their addresses."""
        statement = (
            self._scope.select(
                memberships,
                memberships.c.user_id,
                memberships.c.role,
                memberships.c.created_at,
                users.c.email,
                users.c.email_verified_at,
            )
            .join(users, users.c.id == memberships.c.user_id)
            .order_by(memberships.c.created_at, memberships.c.user_id)
        )
        return list((await self._scope.connection.execute(statement)).all())

    async def role_of(self, user_id: UUID) -> str | None:
        statement = self._scope.select(memberships, memberships.c.role).where(memberships.c.user_id == user_id)
        role: str | None = (await self._scope.connection.execute(statement)).scalar_one_or_none()
        return role

    async def count(self, role: str | None = None) -> int:
        statement = self._scope.select(memberships, func.count())
        if role is not None:
            statement = statement.where(memberships.c.role == role)
        return int((await self._scope.connection.execute(statement)).scalar_one())

    async def set_role(self, user_id: UUID, role: str) -> None:
        statement = self._scope.update(memberships).where(memberships.c.user_id == user_id)
        await self._scope.connection.execute(statement.values(role=role))

    async def remove(self, user_id: UUID) -> None:
        statement = self._scope.delete(memberships).where(memberships.c.user_id == user_id)
        await self._scope.connection.execute(statement)
