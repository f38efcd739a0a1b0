"""Tokens of operators that carry a person's name and an end: signed, and stored nowhere.

`qos_` and a signed statement. Only a holder of a long-lived token, or of the API's secret, makes one.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from quorate_api.security import signed
from quorate_api.security.keys import Keys

PREFIX = "qos_"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_PURPOSE = "operator session"


@dataclass(frozen=True, slots=True)
class OperatorSession:
    id: UUID
    name: str
    until: datetime


def issue(keys: Keys, session: OperatorSession) -> str:
    assert NAME.fullmatch(session.name), "names were checked"
    said = {"id": str(session.id), "name": session.name, "until_s": int(session.until.timestamp())}
    return PREFIX + signed.issue(keys, _PURPOSE, said)


def read(keys: Keys, token: str, now: datetime) -> OperatorSession | None:
    """None: it was made by nobody who may, or is over."""
    said = signed.read(keys, _PURPOSE, token.removeprefix(PREFIX)) if token.startswith(PREFIX) else None
    if said is None:
        return None
    session = OperatorSession(UUID(said["id"]), said["name"], datetime.fromtimestamp(said["until_s"], UTC))
    return session if now < session.until else None
