"""The steps of a request: authenticate, count, claim its Idempotency-Key, one transaction, answer.

`ScopedRoute` is for resources of an organization, `PublicRoute` for signing up and logging in, `OperatorRoute` for the
fleet, `ProberRoute` for those who look at it from outside.
"""

from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any, ClassVar, Literal

import structlog
from fastapi import Request, Response
from fastapi.routing import APIRoute
from sqlalchemy.exc import SQLAlchemyError

from quorate_api import limits
from quorate_api.database.work import Work
from quorate_api.errors import Code, Problem
from quorate_api.errors.handlers import from_exception
from quorate_api.http import idempotency, staff
from quorate_api.http.listeners import is_for_customers
from quorate_api.http.principal import SAFE_METHODS, authenticate
from quorate_api.http.services import services_of
from quorate_api.http.standing import require_active

log = structlog.get_logger(__name__)

Caller = Literal["organization", "operator", "prober", "anybody"]
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class ScopedRoute(APIRoute):
    caller: ClassVar[Caller] = "organization"

    def get_route_handler(self) -> Handler:
        inner = super().get_route_handler()

        async def handle(request: Request) -> Response:
            request.state.operation_id = None
            request.state.rate_headers = {}
            run = _Run(request, self.caller)
            try:
                response = await run.answer(inner)
            except Exception as error:  # the one place that turns a request's exceptions into problems
                problem = from_exception(error)
                await run.failed(problem)
                response = problem.response(services_of(request).settings.origin, request.state.request_id)
            response.headers.update(request.state.rate_headers)
            return response

        return handle


class PublicRoute(ScopedRoute):
    caller = "anybody"


class OperatorRoute(ScopedRoute):
    caller = "operator"


class ProberRoute(ScopedRoute):
    caller = "prober"


class _Run:
    """One running request. It holds the claim on its Idempotency-Key, if it has one."""

    def __init__(self, request: Request, caller: Caller) -> None:
        self._request = request
        self._caller = caller
        self._claim: idempotency.Claim | None = None

    async def answer(self, inner: Handler) -> Response:
        request, services = self._request, services_of(self._request)
        await _read_body(request)
        async with Work(services.engine) as work:
            request.state.work = work
            principal_id = await self._who(work)
            key = idempotency.key_of(request)
            if key is not None:
                async with work.outside():
                    claimed = await idempotency.claim(request, services, principal_id, key)
                if isinstance(claimed, Response):
                    return claimed
                self._claim = claimed
                request.state.operation_id = claimed.record_id
            response = await inner(request)
            if request.method not in SAFE_METHODS and response.status_code < HTTPStatus.BAD_REQUEST:
                await services.record_change(request, work, response)
            if self._claim is not None:
                await self._claim.store(work.connection, response)
        return response

    async def failed(self, problem: Problem) -> None:
        try:
            await services_of(self._request).record_refusal(self._request, problem)
        except SQLAlchemyError as error:  # the customer has its answer all the same
            log.warning("could not note a refusal", error=str(error))
        if self._claim is None:
            return
        try:
            await self._claim.release(problem.code)
        except SQLAlchemyError as error:  # the claim then expires after IDEMPOTENCY_LOCK_S
            log.warning("could not release an Idempotency-Key", error=str(error))

    async def _who(self, work: Work) -> str:
        if self._caller == "anybody":
            return "anonymous"
        if self._caller in ("operator", "prober"):
            if self._caller == "operator" and is_for_customers(self._request.scope):
                raise Problem(Code.OPERATOR_ELSEWHERE)
            caller = self._request.state.staff = staff.authenticate(self._request, self._caller)
            name = f"{caller.staff} {caller.session or caller.name}"
        else:
            principal = self._request.state.principal = await authenticate(self._request, work)
            if self._request.method not in SAFE_METHODS:
                require_active(principal.standing, self._request.scope["route"].name)
            name = str(principal.id)
        await self._count(name)
        return name

    async def _count(self, principal_id: str) -> None:
        standing = await services_of(self._request).rates.request(principal_id)
        self._request.state.rate_headers = standing.headers()
        if not standing.allowed:
            raise Problem(Code.RATE_LIMITED, retry_after_s=standing.reset_s)


async def _read_body(request: Request) -> None:
    if request.method in ("GET", "HEAD", "OPTIONS"):
        return
    size = 0
    chunks = []
    async for chunk in request.stream():
        size += len(chunk)
        if size > limits.REQUEST_BODY_BYTES_MAX:
            raise Problem(Code.BODY_TOO_LARGE)
        chunks.append(chunk)
    request._body = b"".join(chunks)
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if size and kind != "application/json":
        raise Problem(Code.UNSUPPORTED_MEDIA_TYPE)
