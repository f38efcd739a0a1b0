"""People, and the secrets of links in mail to them. They belong to no organization: one may be a member of several."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from quorate_api.database.tables import mail_tokens, users


class UserRepository:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def insert(self, user_id: UUID, email: str, password_hash: str, now: datetime, *, verified: bool) -> bool:
        """False if the address is verified as somebody's, and was to be verified as this one's."""
        statement = (
            insert(users)
            .values(
                id=user_id,
                email=email,
                password_hash=password_hash,
                created_at=now,
                email_verified_at=now if verified else None,
            )
            .on_conflict_do_nothing()
            .returning(users.c.id)
        )
        return (await self._connection.execute(statement)).first() is not None

    async def verified(self, email: str) -> Row[Any] | None:
        """The account whose address it is."""
        statement = select(users).where(users.c.email == email, users.c.email_verified_at.is_not(None))
        return (await self._connection.execute(statement)).one_or_none()

    async def who_may_log_in(self, email: str, limit: int) -> list[Row[Any]]:
        """The account whose address it is, then those that say so and have not shown it: the oldest, then the newest
        ones. So sign-ups of strangers do not push the first one out."""
        age = func.row_number().over(order_by=(users.c.email_verified_at.is_(None), users.c.created_at))
        aged = select(users, age.label("age")).where(users.c.email == email).subquery()
        statement = (
            select(*(aged.c[column.name] for column in users.c))
            .order_by(aged.c.age != 1, aged.c.created_at.desc())
            .limit(limit)
        )
        return list((await self._connection.execute(statement)).all())

    async def by_id(self, user_id: UUID) -> Row[Any]:
        return (await self._connection.execute(select(users).where(users.c.id == user_id))).one()

    async def set_password(self, user_id: UUID, password_hash: str) -> None:
        await self._connection.execute(update(users).where(users.c.id == user_id).values(password_hash=password_hash))

    async def verify_email(self, user_id: UUID, now: datetime) -> None:
        """Raises `IntegrityError` if the address is verified as somebody else's."""
        statement = update(users).where(users.c.id == user_id, users.c.email_verified_at.is_(None))
        await self._connection.execute(statement.values(email_verified_at=now))

    async def memberships(self, user_id: UUID) -> list[Row[Any]]:
        """Oldest first."""
        columns = ("organization_id", "organization_name", "role", "created_at")
        found = func.find_memberships(user_id).table_valued(*columns)
        return list((await self._connection.execute(select(found).order_by(found.c.created_at))).all())


class MailTokenRepository:
    """One link of a kind for each person: a newer one ends the one before it."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def replace(
        self, user_id: UUID, purpose: str, token_hmac: bytes, now: datetime, expires_at: datetime
    ) -> None:
        await self.end(user_id, purpose)
        await self._connection.execute(
            insert(mail_tokens).values(
                token_hmac=token_hmac, user_id=user_id, purpose=purpose, created_at=now, expires_at=expires_at
            )
        )

    async def use(self, token_hmacs: Sequence[bytes], purpose: str, now: datetime) -> UUID | None:
        """The person to whom it was sent, once. None: it was used, replaced, or has expired."""
        statement = (
            delete(mail_tokens)
            .where(mail_tokens.c.token_hmac.in_(token_hmacs), mail_tokens.c.purpose == purpose)
            .returning(mail_tokens.c.user_id, mail_tokens.c.expires_at)
        )
        found = (await self._connection.execute(statement)).one_or_none()
        return None if found is None or found.expires_at <= now else UUID(str(found.user_id))

    async def end(self, user_id: UUID, purpose: str) -> None:
        statement = delete(mail_tokens).where(mail_tokens.c.user_id == user_id, mail_tokens.c.purpose == purpose)
        await self._connection.execute(statement)
