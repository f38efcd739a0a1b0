"""The control client: projects, quotes, groups, usage, SLA reports and invoices, over the REST API.

Answers are the API's JSON as dictionaries (docs/internals/api.md). Problems become ApiError. Every POST carries an
Idempotency-Key made once per call, so that its retries take effect once.
"""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import AsyncIterator
from datetime import date, datetime
from typing import Any
from urllib.parse import quote

import httpx2

from quorate import limits
from quorate.cursor import Cursor
from quorate.errors import CursorError, QuorateError
from quorate.handle import Handle
from quorate.tracing import context_headers
from quorate.version import CLIENT_NAME

Json = dict[str, Any]
ATTEMPTS_MAX = 5
_RETRIED_STATUS = (429, 502, 503, 504)


class ApiError(QuorateError):
    """A problem (RFC 9457) in the API's answer."""

    def __init__(self, status: int, problem: Json) -> None:
        self.status = status
        self.code: str = str(problem.get("code") or "unknown")
        self.title: str = str(problem.get("title") or "")
        self.detail: str = str(problem.get("detail") or "")
        self.request_id: str = str(problem.get("request_id") or "")
        self.link: str = str(problem.get("type") or "")
        self.errors: list[Json] = problem.get("errors") or []
        """The fields at fault, each with `field` and `message`."""
        self.problem = problem
        fields = "".join(f"; {error.get('field')}: {error.get('message')}" for error in self.errors)
        super().__init__(f"{status} {self.code}: {self.detail or self.title}{fields} (request {self.request_id})")


class AuthenticationFailed(ApiError):
    """The key is wrong, expired or revoked."""


class NotAllowed(ApiError):
    """The key lacks the scope."""


class NotFound(ApiError):
    """The resource does not exist, or belongs to another organization."""


class AdmissionRefused(ApiError):
    """The fleet cannot promise this SLA now. `refusal` names the scarce resource and an SLA that would fit."""

    @property
    def refusal(self) -> Json:
        return self.problem.get("refusal") or {}


class ApiUnreachable(QuorateError):
    """The API was unreachable, or gave no usable answer, until the deadline."""


_BY_STATUS: dict[int, type[ApiError]] = {401: AuthenticationFailed, 403: NotAllowed, 404: NotFound}


class Control:
    """Use it as an async context manager, or call `close`. `timeout` (seconds) bounds a call with its retries."""

    def __init__(
        self,
        api_url: str,
        api_key: str,
        *,
        timeout: float = limits.TIMEOUT_S_DEFAULT,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        if not api_url.startswith(("http://", "https://")):
            raise ValueError(f"the API's address begins with https://, unlike {api_url!r}")
        if not api_key.startswith("qk_"):
            raise ValueError("an API key begins with qk_; make one in the portal, under Keys")
        self._timeout_s = timeout
        self._http = httpx2.AsyncClient(
            base_url=api_url.rstrip("/") + "/v1/",
            headers={"Authorization": f"Bearer {api_key}", "Accept": "application/json", "User-Agent": CLIENT_NAME},
            timeout=timeout,
            transport=transport,
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Control:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # Projects.

    def projects(self) -> AsyncIterator[Json]:
        return self._list("projects")

    async def create_project(self, name: str) -> Json:
        return await self._call("POST", "projects", {"name": name})

    async def project(self, project_id: str) -> Json:
        return await self._call("GET", f"projects/{_id(project_id)}")

    # Guarantees of projects.

    async def guarantee(self, project_id: str) -> Json:
        """The project's guarantee, and what each group wants and has of it now."""
        return await self._call("GET", f"projects/{_id(project_id)}/guarantee")

    async def set_guarantee(self, project_id: str, terms: Json) -> Json:
        """`terms`: shared_tokens_per_s and, optionally, max_tokens_per_s and policy. After an error nothing has
        changed."""
        return await self._call("PUT", f"projects/{_id(project_id)}/guarantee", terms)

    async def quote_guarantee(self, project_id: str, terms: Json) -> Json:
        """Price a guarantee and check its admission: `{admissible, price, refusal}`. Nothing is reserved."""
        return await self._call("POST", f"projects/{_id(project_id)}/guarantee/quote", terms)

    async def take_back_guarantee(self, project_id: str) -> None:
        await self._call("DELETE", f"projects/{_id(project_id)}/guarantee")

    # Groups.

    async def quote(self, sla: Json) -> Json:
        """Price an SLA and check its admission: `{admissible, price, demand, refusal}`. Nothing is reserved."""
        return await self._call("POST", "quotes", sla)

    def groups(self, project_id: str) -> AsyncIterator[Json]:
        return self._list(f"projects/{_id(project_id)}/groups")

    async def create_group(self, project_id: str, name: str, sla: Json) -> Json:
        """`sla`: durability, replication_degree, request_size_bytes, rate_per_s and, optionally, read_rate_per_s,
        min_replicas, region, retention_bytes, retention_age_s, latency (standard or low), partitions. Raises
        AdmissionRefused."""
        return await self._call("POST", f"projects/{_id(project_id)}/groups", {"name": name, **sla})

    async def group(self, group_id: str) -> Json:
        return await self._call("GET", f"groups/{_id(group_id)}")

    async def resize_group(self, group_id: str, changes: Json) -> Json:
        """Change an SLA in place. Appends continue, at the new price. `changes`: any of rate_per_s,
        read_rate_per_s, request_size_bytes, min_replicas, retention_bytes, retention_age_s, latency, partitions. After
        AdmissionRefused nothing has changed."""
        return await self._call("PATCH", f"groups/{_id(group_id)}", changes)

    async def costs(self, group_id: str) -> Json:
        """How much of the reservation an append or a read takes, by size: `{request_size_bytes, operations}`."""
        return await self._call("GET", f"groups/{_id(group_id)}/costs")

    async def delete_group(self, group_id: str) -> None:
        await self._call("DELETE", f"groups/{_id(group_id)}")

    async def handle(self, group_id: str) -> Handle:
        return Handle.parse(await self._call("GET", f"groups/{_id(group_id)}/handle"))

    # Partitions and checkpoints.

    async def partitions(self, group_id: str) -> Json:
        """The group's partitions, each with its chain: `{key_hash, layout, is_changing, items}`."""
        return await self._call("GET", f"groups/{_id(group_id)}/partitions")

    async def add_partitions(self, group_id: str, partitions: int) -> Json:
        """Give the group so many partitions in all. Entries stay where they are, and each key keeps its order."""
        return await self._call("PATCH", f"groups/{_id(group_id)}", {"partitions": partitions})

    async def checkpoint(self, group_id: str, consumer: str) -> Cursor:
        """How far a consumer has come: the beginning, before the first is saved."""
        answer = await self._call("GET", f"groups/{_id(group_id)}/checkpoints/{quote(consumer, safe='')}")
        return Cursor.of_checkpoint(uuid.UUID(group_id), answer)

    async def save_checkpoint(self, group_id: str, consumer: str, cursor: Cursor, *, rewind: bool = False) -> None:
        """Save how far a consumer has come. Offsets below the saved ones are ignored unless `rewind`."""
        if cursor.group_id != uuid.UUID(group_id):
            raise CursorError(f"the cursor is of the group {cursor.group_id}, and this is {group_id}")
        offsets = [{"partition": number, "next_offset": offset} for number, offset in enumerate(cursor.offsets)]
        path = f"groups/{_id(group_id)}/checkpoints/{quote(consumer, safe='')}"
        await self._call("PUT", path, {"offsets": offsets, "rewind": rewind})

    async def delete_checkpoint(self, group_id: str, consumer: str) -> None:
        await self._call("DELETE", f"groups/{_id(group_id)}/checkpoints/{quote(consumer, safe='')}")

    # Usage and invoices.

    async def usage(self, group_id: str, start: datetime | None = None, end: datetime | None = None) -> Json:
        query = {"from": start and start.isoformat(), "to": end and end.isoformat()}
        return await self._call("GET", f"groups/{_id(group_id)}/usage", query=query)

    async def sla(self, group_id: str, month: date | None = None) -> Json:
        """The SLA report of a month, by default of the current one."""
        return await self._call("GET", f"groups/{_id(group_id)}/sla", query={"month": month and f"{month:%Y-%m}"})

    def invoices(self) -> AsyncIterator[Json]:
        return self._list("invoices")

    async def invoice(self, invoice_id: str = "current") -> Json:
        return await self._call("GET", f"invoices/{_id(invoice_id)}")

    # Requests.

    async def _list(self, path: str) -> AsyncIterator[Json]:
        cursor: str | None = None
        while True:
            page = await self._call("GET", path, query={"cursor": cursor})
            for item in page["items"]:
                yield item
            cursor = page.get("next_cursor")
            if not cursor:
                return

    async def _call(self, method: str, path: str, body: Json | None = None, query: Json | None = None) -> Json:
        headers = context_headers()
        if method == "POST":
            headers["Idempotency-Key"] = str(uuid.uuid4())
        params = {key: value for key, value in (query or {}).items() if value}
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + self._timeout_s
        attempt = 0
        while True:
            attempt += 1
            left_s = ends_at - loop.time()
            outcome = await self._attempt(method, path, body, params, headers, max(left_s, 0.001))
            if isinstance(outcome, dict):
                return outcome
            delay_s = min(2.0, 0.1 * 2.0**attempt) * random.random()
            if isinstance(outcome, _Retry):
                delay_s = max(delay_s, outcome.after_s)
                outcome = outcome.error
            elif isinstance(outcome, ApiError):
                raise outcome
            if attempt >= ATTEMPTS_MAX or loop.time() + delay_s >= ends_at:
                raise outcome
            await asyncio.sleep(delay_s)

    async def _attempt(
        self, method: str, path: str, body: Json | None, params: Json, headers: dict[str, str], timeout_s: float
    ) -> Json | ApiError | ApiUnreachable | _Retry:
        try:
            response = await self._http.request(
                method, path, json=body, params=params, headers=headers, timeout=timeout_s
            )
        except httpx2.TransportError as problem:
            return ApiUnreachable(f"{method} {self._http.base_url}{path}: {type(problem).__name__} {problem}")
        if response.is_success:
            return _json_of(response)
        error = _error_of(response)
        if response.status_code in _RETRIED_STATUS or error.code == "idempotency_in_progress":
            return _Retry(error, _retry_after_s(response))
        return error


class _Retry:
    def __init__(self, error: ApiError, after_s: float) -> None:
        self.error = error
        self.after_s = after_s


def _error_of(response: httpx2.Response) -> ApiError:
    try:
        problem = response.json()
    except ValueError:
        problem = {}
    if not isinstance(problem, dict):
        problem = {}
    if problem.get("code") == "admission_refused":
        return AdmissionRefused(response.status_code, problem)
    return _BY_STATUS.get(response.status_code, ApiError)(response.status_code, problem)


def _json_of(response: httpx2.Response) -> Json | ApiUnreachable:
    if not response.content:
        return {}
    try:
        answer = response.json()
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        return ApiUnreachable(f"{response.url} answered something that is not a JSON object; is it the API's address?")
    return answer


def _retry_after_s(response: httpx2.Response) -> float:
    try:
        return max(0.0, float(response.headers.get("Retry-After", "0")))
    except ValueError:  # a date: the client's own backoff serves
        return 0.0


def _id(value: str) -> str:
    """An id as one segment of a path, with every character quoted."""
    return quote(str(value), safe="")
