"""Turns exceptions into problems. Unexpected exceptions are logged here and nowhere else."""

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException
from starlette.responses import Response

from quorate_api.coordinator.client import CoordinatorUnavailable
from quorate_api.errors.catalogue import Code
from quorate_api.errors.problem import FieldError, Problem

log = structlog.get_logger(__name__)

# SQLSTATEs of a server that is shutting down, restarting or full: the request may be retried.
_AWAY = ("08", "57P", "53")


def from_exception(error: Exception) -> Problem:  # noqa: PLR0911 - one return per kind
    """The problem that `error` is for a client."""
    match error:
        case Problem():
            return error
        case RequestValidationError():
            return from_validation(error)
        case HTTPException():
            return _from_http(error)
        case CoordinatorUnavailable():
            log.warning("the coordinator does not answer", error=str(error))
            return Problem(Code.COORDINATOR_UNAVAILABLE, retry_after_s=2)
        case PoolTimeout():
            return Problem(Code.OVERLOADED, retry_after_s=1)
        case OperationalError() | DBAPIError() if _is_away(error):
            log.warning("the database does not answer", error=str(error.orig))
            return Problem(Code.DATABASE_UNAVAILABLE, retry_after_s=2)
        case _:
            log.error("unexpected error", exc_info=error)
            return Problem(Code.INTERNAL)


def from_validation(error: RequestValidationError) -> Problem:
    found = []
    for item in error.errors():
        if item["type"] == "json_invalid":
            return Problem(Code.MALFORMED_JSON, f"The body is not JSON: {item.get('ctx', {}).get('error', '')}.")
        where = [str(part) for part in item["loc"]]
        found.append(FieldError(field=".".join(where[1:]) or where[0], message=_sentence(item["msg"])))
    names = ", ".join(dict.fromkeys(entry.field for entry in found))
    return Problem(Code.VALIDATION_FAILED, f"Not valid: {names}. `errors` says why.", errors=found)


def _sentence(message: str) -> str:
    return message.removeprefix("Value error, ").rstrip(".") + "."


def _from_http(error: HTTPException) -> Problem:
    match error.status_code:
        case 404:
            return Problem(Code.NOT_FOUND, "There is nothing at this address.")
        case 405:
            return Problem(Code.METHOD_NOT_ALLOWED, headers=dict(error.headers or {}))
        case 400:
            return Problem(Code.MALFORMED_JSON)
        case _:
            log.error("unexpected HTTP exception", status=error.status_code, detail=error.detail)
            return Problem(Code.INTERNAL)


def _is_away(error: DBAPIError) -> bool:
    state = getattr(error.orig, "sqlstate", None)
    return error.connection_invalidated or (state.startswith(_AWAY) if state else isinstance(error, OperationalError))


def install(app: FastAPI, origin: str) -> None:
    async def answer(request: Request, error: Exception) -> Response:
        return from_exception(error).response(origin, request.state.request_id)

    for kind in (Problem, RequestValidationError, HTTPException, CoordinatorUnavailable, DBAPIError, PoolTimeout):
        app.add_exception_handler(kind, answer)
    app.add_exception_handler(Exception, answer)
