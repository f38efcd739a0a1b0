"""Calls of the control client from code that is not async, each with a client of its own.

Each call runs in a thread with its own loop, because the caller may be within a loop: Pulumi's mocks call providers so.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import httpx2

from quorate.control import Control

Result = TypeVar("Result")
TIMEOUT_S = 30.0


def with_control(
    api_url: str, api_key: str, work: Callable[[Control], Awaitable[Result]], *, idempotency_key: str | None = None
) -> Result:
    """`idempotency_key`: the key of the POST that `work` makes. Without it each POST gets a new one."""

    async def call() -> Result:
        transport = _Keyed(idempotency_key) if idempotency_key else None
        async with Control(api_url, api_key, timeout=TIMEOUT_S, transport=transport) as control:
            return await work(control)

    results: list[Result] = []
    problems: list[BaseException] = []

    def run() -> None:
        try:
            results.append(asyncio.run(call()))
        except BaseException as problem:
            problems.append(problem)

    thread = threading.Thread(target=run, name="quorate-pulumi")
    thread.start()
    thread.join()
    if problems:
        raise problems[0]
    return results[0]


class _Keyed(httpx2.AsyncBaseTransport):
    """Sends POSTs under a key that outlives the calling program. It wraps a client, so that the environment's proxies
    still apply."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._client = httpx2.AsyncClient()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "POST":
            request.headers["Idempotency-Key"] = self._key
        response = await self._client.send(request)
        headers: Any = [(k, v) for k, v in response.headers.multi_items() if k.lower() not in _OF_THE_WIRE]
        return httpx2.Response(response.status_code, headers=headers, content=response.content)

    async def aclose(self) -> None:
        await self._client.aclose()


_OF_THE_WIRE = ("content-encoding", "content-length", "transfer-encoding")
