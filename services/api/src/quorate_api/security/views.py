"""Tokens with which an operator looks at an organization as its members do, and changes nothing: `qv_` and a signed
statement. Each is noted in the audit logs of the organization and of operators when it is made."""

from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from quorate_api.security import signed
from quorate_api.security.keys import Keys

PREFIX = "qv_"
_PURPOSE = "operator view"


@dataclass(frozen=True, slots=True)
class View:
    id: UUID
    organization_id: UUID
    operator: str
    until: datetime


def issue(keys: Keys, view: View) -> str:
    said = {
        "id": str(view.id),
        "organization": str(view.organization_id),
        "operator": view.operator,
        "until_s": int(view.until.timestamp()),
    }
    return PREFIX + signed.issue(keys, _PURPOSE, said)


def read(keys: Keys, token: str, now: datetime) -> View | None:
    """None: it was made by nobody who may, or is over."""
    said = signed.read(keys, _PURPOSE, token.removeprefix(PREFIX)) if token.startswith(PREFIX) else None
    if said is None:
        return None
    until = datetime.fromtimestamp(said["until_s"], UTC)
    return View(UUID(said["id"]), UUID(said["organization"]), said["operator"], until) if now < until else None
