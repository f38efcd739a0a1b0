"""Operators of the fleet. They authenticate with a token from a file and belong to no organization."""

from typing import Annotated

from fastapi import Depends, Request

from quorate_api.errors import Code, Problem
from quorate_api.http.services import services_of


def authenticate(request: Request) -> str:
    """A name for the operator, or a 401. API keys and sessions count for nothing here."""
    services = services_of(request)
    authorization = request.headers.get("authorization")
    if authorization is None:
        raise Problem(Code.NOT_AUTHENTICATED, "Send `Authorization: Bearer qo_…` with an operator's token.")
    scheme, _, token = authorization.partition(" ")
    name = services.operators.who(services.keys, token.strip()) if scheme.lower() == "bearer" else None
    if name is None:
        raise Problem(
            Code.CREDENTIALS_INVALID,
            "This is not an operator's token of this API (`qo_…`, from the file QUORATE_OPERATOR_TOKEN_FILE). "
            "API keys are for customers only.",
        )
    return name


def current_operator(request: Request) -> str:
    name = request.state.operator
    assert isinstance(name, str), "the route is not an OperatorRoute"
    return name


Operator = Annotated[str, Depends(current_operator)]
