"""Tokens of operators that carry a person's name and an end: signed, and stored nowhere.

`qos_` + base64url of {"id","name","until_s"} + `.` + HMAC. Only a holder of a long-lived token, or of the API's secret,
makes one.
"""

import base64
import binascii
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from quorate_api.security.keys import Keys, same

PREFIX = "qos_"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
LENGTH_MAX = 400
_PURPOSE = "operator session"


@dataclass(frozen=True, slots=True)
class OperatorSession:
    id: UUID
    name: str
    until: datetime


def issue(keys: Keys, session: OperatorSession) -> str:
    assert NAME.fullmatch(session.name), "names were checked"
    said = {"id": str(session.id), "name": session.name, "until_s": int(session.until.timestamp())}
    payload = base64.urlsafe_b64encode(json.dumps(said).encode()).rstrip(b"=")
    return f"{PREFIX}{payload.decode()}.{_mac(keys, payload)}"


def read(keys: Keys, token: str, now: datetime) -> OperatorSession | None:
    """None: it was made by nobody who may, or is over."""
    if len(token) > LENGTH_MAX or not token.isascii():
        return None
    payload, _, mac = token.removeprefix(PREFIX).partition(".")
    if not token.startswith(PREFIX) or not same(_mac(keys, payload.encode()).encode(), mac.encode()):
        return None
    try:
        said = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (binascii.Error, ValueError):
        raise AssertionError("a signed payload was written by `issue`") from None
    session = OperatorSession(UUID(said["id"]), said["name"], datetime.fromtimestamp(said["until_s"], UTC))
    return session if now < session.until else None


def _mac(keys: Keys, payload: bytes) -> str:
    return keys.mac(_PURPOSE, payload).hex()
