"""Tokens for servers end with the credential for which they were issued (docs/internals/api.md, "Revocation").

A credential is a session or a secret of an API key. Servers check tokens alone, so they hear of revoked credentials:
the worker tells the coordinator, and the coordinator tells every server.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row

from quorate_api import limits
from quorate_api.credentials.repository import TokenRepository
from quorate_api.database.scope import Scope
from quorate_api.errors import Code, Problem
from quorate_api.http.principal import Principal

RESOLUTION = timedelta(seconds=limits.TOKENS_UNTIL_RESOLUTION_S)


def token_end(principal: Principal, now: datetime) -> datetime:
    """The expiry of a token that the caller gets now."""
    end = now + timedelta(seconds=limits.TOKEN_LIFETIME_S)
    return min(end, principal.credential.ends_at) if principal.credential.ends_at is not None else end


async def note_token(scope: Scope, principal: Principal, until: datetime, now: datetime) -> None:
    """Call it before the caller gets a token, last in its transaction. Raises a 401 if the credential has ended."""
    known = principal.credential.tokens_until
    if known is not None and until - known < RESOLUTION:
        return  # a revocation lasts so much longer
    repository, credential_id = TokenRepository(scope), principal.credential.id
    if principal.kind == "key":
        if not await repository.note_of_secret(credential_id, until, now):
            raise Problem(Code.CREDENTIALS_INVALID, "This API key was revoked.")
    elif not await repository.note_of_session(credential_id, until):
        raise Problem(Code.SESSION_EXPIRED)


async def revoke(scope: Scope, ended: Iterable[Row[Any]], now: datetime) -> None:
    """`ended`: credentials that have ended before their time, with `id` and `tokens_until`."""
    revoked = [
        (row.id, row.tokens_until + RESOLUTION)
        for row in ended
        if row.tokens_until is not None and row.tokens_until + RESOLUTION > now
    ]
    await TokenRepository(scope).revoke(revoked, now)
