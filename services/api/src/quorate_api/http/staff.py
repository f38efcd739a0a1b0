"""Operators of the fleet, and its probers. They authenticate with a token from a file and belong to no organization."""

from typing import Annotated

from fastapi import Depends, Request

from quorate_api.errors import Code, Problem
from quorate_api.http.services import services_of
from quorate_api.security.staff_tokens import PREFIXES, Staff


def authenticate(request: Request, staff: Staff) -> str:
    """A name for the caller, or a 401. API keys, sessions and tokens of the other kind count for nothing here."""
    services = services_of(request)
    authorization = request.headers.get("authorization")
    prefix = PREFIXES[staff]
    if authorization is None:
        raise Problem(Code.NOT_AUTHENTICATED, f"Send `Authorization: Bearer {prefix}…` with a token for {staff}s.")
    scheme, _, token = authorization.partition(" ")
    name = services.staff[staff].who(services.keys, token.strip()) if scheme.lower() == "bearer" else None
    if name is None:
        raise Problem(
            Code.CREDENTIALS_INVALID,
            f"This is not a token for {staff}s of this API (`{prefix}…`, from the file "
            f"QUORATE_{staff.upper()}_TOKEN_FILE). API keys are for customers only.",
        )
    return name


def current_operator(request: Request) -> str:
    name = request.state.staff
    assert isinstance(name, str), "the route is not an OperatorRoute"
    return name


Operator = Annotated[str, Depends(current_operator)]
