"""Operators of the fleet, and its probers. They authenticate with a token from a file and belong to no organization."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Request

from quorate_api.errors import Code, Problem
from quorate_api.http.services import Services, services_of
from quorate_api.security import operator_sessions
from quorate_api.security.staff_tokens import PREFIXES, Staff


@dataclass(frozen=True, slots=True)
class StaffCaller:
    """The caller. `session` and `until`: of a session; None for a long-lived token."""

    staff: Staff
    name: str
    session: UUID | None = None
    until: datetime | None = None


def authenticate(request: Request, staff: Staff) -> StaffCaller:
    """The caller, or a 401. API keys, people's sessions and tokens of the other kind count for nothing here."""
    services = services_of(request)
    authorization = request.headers.get("authorization")
    prefix = PREFIXES[staff]
    if authorization is None:
        raise Problem(Code.NOT_AUTHENTICATED, f"Send `Authorization: Bearer {prefix}…` with a token for {staff}s.")
    scheme, _, token = authorization.partition(" ")
    found = _known(services, staff, token.strip()) if scheme.lower() == "bearer" else None
    if found is None:
        raise Problem(
            Code.CREDENTIALS_INVALID,
            f"This is not a token for {staff}s of this API (`{prefix}…`, from the file "
            f"QUORATE_{staff.upper()}_TOKEN_FILE), or a session of it that is over. API keys are for customers only.",
        )
    return found


def _known(services: Services, staff: Staff, token: str) -> StaffCaller | None:
    if staff == "operator" and token.startswith(operator_sessions.PREFIX):
        session = operator_sessions.read(services.keys, token, datetime.now(UTC))
        return None if session is None else StaffCaller(staff, session.name, session.id, session.until)
    name = services.staff[staff].who(services.keys, token)
    return None if name is None else StaffCaller(staff, name)


def calling_operator(request: Request) -> StaffCaller:
    caller = request.state.staff
    assert isinstance(caller, StaffCaller), "the route is not an OperatorRoute"
    return caller


def current_operator(request: Request) -> str:
    return calling_operator(request).name


CallingOperator = Annotated[StaffCaller, Depends(calling_operator)]
Operator = Annotated[str, Depends(current_operator)]
