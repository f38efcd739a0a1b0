"""How a request runs: authenticate, count, claim its Idempotency-Key, one transaction, answer.

`ScopedRoute` is for everything that belongs to an organization; `PublicRoute` for signing up and logging in.
"""

from collections.abc import Callable, Coroutine
from typing import Any, ClassVar

import structlog
from fastapi import Request, Response
from fastapi.routing import APIRoute
from sqlalchemy.exc import SQLAlchemyError

from quorate_api import limits
from quorate_api.database.work import Work
from quorate_api.errors import Code, Problem
from quorate_api.errors.handlers import from_exception
from quorate_api.http import idempotency
from quorate_api.http.principal import authenticate
from quorate_api.http.services import services_of

log = structlog.get_logger(__name__)

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class ScopedRoute(APIRoute):
    authenticated: ClassVar[bool] = True

    def get_route_handler(self) -> Handler:
        inner = super().get_route_handler()

        async def handle(request: Request) -> Response:
            request.state.operation_id = None
            request.state.rate_headers = {}
            run = _Run(request, self.authenticated)
            try:
                response = await run.answer(inner)
            except Exception as error:  # the one place where a request's exceptions become problems
                problem = from_exception(error)
                await run.failed(problem)
                response = problem.response(services_of(request).settings.origin, request.state.request_id)
            response.headers.update(request.state.rate_headers)
            return response

        return handle


class PublicRoute(ScopedRoute):
    authenticated = False


class _Run:
    """One request on its way; holds the claim on its Idempotency-Key, if it has one."""

    def __init__(self, request: Request, authenticated: bool) -> None:
        self._request = request
        self._authenticated = authenticated
        self._claim: idempotency.Claim | None = None

    async def answer(self, inner: Handler) -> Response:
        request, services = self._request, services_of(self._request)
        await _read_body(request)
        async with Work(services.engine) as work:
            request.state.work = work
            principal_id = "anonymous"
            if self._authenticated:
                principal = request.state.principal = await authenticate(request, work)
                principal_id = str(principal.id)
                await self._count(principal_id)
            key = idempotency.key_of(request)
            if key is not None:
                async with work.outside():
                    claimed = await idempotency.claim(request, services, principal_id, key)
                if isinstance(claimed, Response):
                    return claimed
                self._claim = claimed
                request.state.operation_id = claimed.record_id
            response = await inner(request)
            if self._claim is not None:
                await self._claim.store(work.connection, response)
        return response

    async def failed(self, problem: Problem) -> None:
        if self._claim is None:
            return
        try:
            await self._claim.release(problem.code)
        except SQLAlchemyError as error:  # the claim then ends by itself, after IDEMPOTENCY_LOCK_S
            log.warning("could not release an Idempotency-Key", error=str(error))

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
