"""The coordinator's HTTP interface. Every call has a deadline. A call that may be repeated is repeated once."""

import asyncio
import math
import random
import ssl
import time
from collections.abc import Sequence
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any, Self, TypeVar
from uuid import UUID

import httpx2
import structlog
from opentelemetry import propagate
from pydantic import BaseModel, TypeAdapter, ValidationError

from quorate_api import limits
from quorate_api.coordinator.addresses import Addresses
from quorate_api.coordinator.schemas import (
    Access,
    Authority,
    BalanceView,
    Events,
    FleetView,
    GroupView,
    GuaranteeQuote,
    GuaranteeRefusal,
    GuaranteeView,
    IssuedToken,
    JoinTokenView,
    ObservedSla,
    PartitionsView,
    ProjectGuaranteeView,
    Quote,
    Refusal,
    ServerView,
    SharingView,
)
from quorate_api.settings import Settings

log = structlog.get_logger(__name__)

Model = TypeVar("Model", bound=BaseModel)
Item = TypeVar("Item")

# In the certificates of coordinators (`names.rs` of the servers' types).
NAME = "coordinator.quorate.internal"

# It is not there, or does not know the caller: that holds for every request.
_AWAY = (401, 403, 429, 502, 503, 504)


class CoordinatorUnavailable(Exception):
    """No usable answer. `sent`: the request may have taken effect."""

    def __init__(self, text: str, *, sent: bool) -> None:
        super().__init__(text)
        self.sent = sent


class AnswerOdd(CoordinatorUnavailable):
    """An answer that does not follow the contract, or an error in this one request. Others may be answered."""


class Refused(Exception):
    """Admission refused the SLA."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


class GuaranteeRefused(Exception):
    """Servers have no room for the guarantee."""

    def __init__(self, refusal: GuaranteeRefusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


class RequestInvalid(Exception):
    """The coordinator rejected the request as invalid. The text names the field and the reason."""

    def __init__(self, text: str, code: str = "", field: str = "") -> None:
        super().__init__(text)
        self.code = code
        self.field = field


class Coordinator:
    """Client of a fleet's coordinators, of which it calls the one that leads. Close it with `aclose`.

    `ca_file`: the certificate of the fleet's authority, for https.
    """

    def __init__(
        self,
        urls: Sequence[str],
        token: str,
        ca_file: Path | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._addresses = Addresses(urls)
        self._http = httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {token}"},
            timeout=limits.COORDINATOR_TIMEOUT_S,
            limits=httpx2.Limits(max_connections=50, max_keepalive_connections=10),
            trust_env=False,
            transport=transport,
            verify=ssl.create_default_context(cafile=ca_file) if ca_file is not None else True,
        )
        self._authority: tuple[str, float] | None = None  # its certificate, and the time it was fetched

    @classmethod
    def configured(cls, settings: Settings) -> Self:
        return cls(settings.coordinator_urls(), settings.coordinator_token(), settings.coordinator_ca_file)

    async def aclose(self) -> None:
        await self._http.aclose()

    async def health(self) -> dict[str, Any]:
        answer = await self._call("GET", "/v1/health", timeout=2.0)
        return dict(answer.json())

    async def authority_pem(self) -> str:
        """The fleet's certificate authority in PEM, at most a minute old, or older while the coordinator is away."""
        if self._authority is not None and time.monotonic() - self._authority[1] < limits.AUTHORITY_AGE_S_MAX:
            return self._authority[0]
        try:
            answer = await self._call("GET", "/v1/ca", timeout=2.0)
            found = self._parse(answer, Authority).ca_pem
        except CoordinatorUnavailable:
            if self._authority is None:
                raise
            found = self._authority[0]
        self._authority = (found, time.monotonic())
        return found

    async def quote(
        self,
        sla: ObservedSla,
        replaces: UUID | None = None,
        guaranteed_project: UUID | None = None,
        partitions: int | None = None,
    ) -> Quote:
        """`replaces`: a group whose own reservation does not count against the SLA. `guaranteed_project`: of the
        group, if it has a guarantee. `partitions`: among which the SLA is divided; None: as many as the group has."""
        body: dict[str, Any] = {"sla": _said(sla)}
        if partitions is not None:
            body["partitions"] = partitions
        if guaranteed_project is not None:
            body["project_id"] = str(guaranteed_project)
        if replaces is not None:
            body["replaces_group_id"] = str(replaces)
        answer = await self._call("POST", "/v1/quotes", body, repeatable=True)
        return self._parse(answer, Quote)

    async def put_group(self, group_id: UUID, project_id: UUID, sla: ObservedSla) -> GroupView:
        """Admit a group. Raises `Refused`. Repeating it is harmless."""
        body = {"sla": _said(sla), "project_id": str(project_id)}
        answer = await self._call("PUT", f"/v1/groups/{group_id}", body, repeatable=True)
        return self._parse(answer, GroupView)

    async def group(self, group_id: UUID, *, timeout_s: float = limits.COORDINATOR_TIMEOUT_S) -> GroupView | None:
        answer = await self._call("GET", f"/v1/groups/{group_id}", timeout=timeout_s)
        return None if answer.status_code == 404 else self._parse(answer, GroupView)

    async def groups(self) -> list[GroupView]:
        """All groups. One that does not follow the contract is logged, and left out."""
        answer = await self._call("GET", "/v1/groups")
        found = []
        for view in self._parse_list(answer, dict[str, Any]):
            try:
                found.append(GroupView.model_validate(view))
            except ValidationError as error:
                log.error("a group does not follow the contract", group_id=view.get("group_id"), error=str(error))
        return found

    async def revoke(self, credentials: Sequence[tuple[UUID, datetime]]) -> None:
        """Have every server refuse tokens of these credentials, each until that time. Repeating it is harmless."""
        told = [{"credential": str(each), "until_s": math.ceil(until.timestamp())} for each, until in credentials]
        await self._call("POST", "/v1/revocations", {"revocations": told}, repeatable=True)

    async def servers(self) -> list[ServerView]:
        return self._parse_list(await self._call("GET", "/v1/servers"), ServerView)

    async def server(self, server_id: int) -> ServerView | None:
        return self._server(await self._call("GET", f"/v1/servers/{server_id}"))

    async def drain(self, server_id: int) -> ServerView | None:
        """Begin to drain; None: no such server. Repeating it is harmless."""
        return self._server(
            await self._call("POST", f"/v1/servers/{server_id}/drain", repeatable=True, may_be_absent=True)
        )

    async def call_off_drain(self, server_id: int) -> ServerView | None:
        return self._server(await self._call("DELETE", f"/v1/servers/{server_id}/drain", repeatable=True))

    async def forget_server(self, server_id: int) -> bool:
        """Forget a failed server. False: no such server. Raises `RequestInvalid` with `server_alive`."""
        answer = await self._call("DELETE", f"/v1/servers/{server_id}", repeatable=True)
        return answer.status_code != 404

    async def capacity(self) -> FleetView:
        return self._parse(await self._call("GET", "/v1/capacity"), FleetView)

    async def sharing(self) -> SharingView | None:
        """The last round of sharing; None: a coordinator of a release that computes none."""
        answer = await self._call("GET", "/v1/sharing", may_be_absent=True)
        return None if answer.status_code == 404 else self._parse(answer, SharingView)

    async def balance(self) -> BalanceView | None:
        """What moves between servers, and why; None: a coordinator of a release that does not say."""
        answer = await self._call("GET", "/v1/balance", may_be_absent=True)
        return None if answer.status_code == 404 else self._parse(answer, BalanceView)

    async def move(self, group_id: UUID, from_server: int, to_server: int | None) -> GroupView | None:
        """Has a replica move; None: no such group. Raises `RequestInvalid` with `no_room`, `group_moving`, …
        Repeating it is harmless."""
        body = {"from_server_id": from_server} | ({} if to_server is None else {"to_server_id": to_server})
        path = f"/v1/groups/{group_id}/moves"
        answer = await self._call("POST", path, body, repeatable=True, may_be_absent=True)
        return None if answer.status_code == 404 else self._parse(answer, GroupView)

    async def guarantees(self) -> list[ProjectGuaranteeView]:
        return self._parse_list(await self._call("GET", "/v1/guarantees"), ProjectGuaranteeView)

    async def join_token(self, ttl_s: int, name: str | None, *, auxiliary: bool) -> IssuedToken:
        """Never repeated, because each answer is another token."""
        body = {"ttl_s": ttl_s, "name": name, "auxiliary": auxiliary}
        return self._parse(await self._call("POST", "/v1/join-tokens", body), IssuedToken)

    async def join_tokens(self) -> list[JoinTokenView]:
        return self._parse_list(await self._call("GET", "/v1/join-tokens"), JoinTokenView)

    async def revoke_join_token(self, token_id: str) -> bool:
        """False: no such token. Repeating it is harmless."""
        answer = await self._call("DELETE", f"/v1/join-tokens/{token_id}", repeatable=True)
        return answer.status_code != 404

    async def reset_group(self, group_id: UUID, epoch: int) -> GroupView:
        """Reset a group that was lost in `epoch`. Raises `Refused`, and `RequestInvalid` if it is not lost.
        Repeating it is harmless."""
        answer = await self._call("POST", f"/v1/groups/{group_id}/reset", {"epoch": epoch}, repeatable=True)
        return self._parse(answer, GroupView)

    async def resize_group(self, group_id: UUID, sla: ObservedSla, revision: int) -> GroupView | None:
        """Set a group's SLA, its `revision`-th. None: no such group. Raises `Refused`, and `RequestInvalid` with
        `group_lost`, `sla_revision`, … Repeating it is harmless."""
        body = {"sla": _said(sla), "revision": revision}
        answer = await self._call("PUT", f"/v1/groups/{group_id}/sla", body, repeatable=True, may_be_absent=True)
        return None if answer.status_code == 404 else self._parse(answer, GroupView)

    async def set_partitions(
        self, group_id: UUID, project_id: UUID, sla: ObservedSla, partitions: list[UUID], revision: int
    ) -> PartitionsView:
        """Admit a group with partitions, or change it as a whole, for the `revision`-th time. Raises `Refused`, and
        `RequestInvalid` with `partition_not_ready`, `partitions_growing`, … Repeating it is harmless."""
        body = {
            "sla": _said(sla),
            "project_id": str(project_id),
            "partitions": [str(partition) for partition in partitions],
            "revision": revision,
        }
        answer = await self._call("PUT", f"/v1/groups/{group_id}/partitions", body, repeatable=True)
        return self._parse(answer, PartitionsView)

    async def partitions(
        self, group_id: UUID, *, timeout_s: float = limits.COORDINATOR_TIMEOUT_S
    ) -> PartitionsView | None:
        """None: the group has no partitions, or is gone."""
        answer = await self._call("GET", f"/v1/groups/{group_id}/partitions", timeout=timeout_s)
        return None if answer.status_code == 404 else self._parse(answer, PartitionsView)

    async def set_access(self, group_id: UUID, access: Access) -> GroupView | None:
        """Set what clients may use of a group. None: no such group. Raises `RequestInvalid` with `group_deleted`.
        Repeating it is harmless."""
        body = {"access": access}
        answer = await self._call("PUT", f"/v1/groups/{group_id}/access", body, repeatable=True, may_be_absent=True)
        return None if answer.status_code == 404 else self._parse(answer, GroupView)

    async def guarantee(self, project_id: UUID) -> GuaranteeView:
        answer = await self._call("GET", f"/v1/projects/{project_id}/guarantee")
        return self._parse(answer, GuaranteeView)

    async def set_guarantee(self, project_id: UUID, terms: dict[str, Any] | None, revision: int) -> GuaranteeView:
        """Set a project's guarantee, its `revision`-th; None: it has none any more. Raises `GuaranteeRefused`, and
        `RequestInvalid` with `foreign_group`, `guarantee_below_groups`, … Repeating it is harmless."""
        body = {"guarantee": terms, "revision": revision}
        answer = await self._call("PUT", f"/v1/projects/{project_id}/guarantee", body, repeatable=True)
        return self._parse(answer, GuaranteeView)

    async def quote_guarantee(self, project_id: UUID, terms: dict[str, Any]) -> GuaranteeRefusal | None:
        """None: it would be given now."""
        path = f"/v1/projects/{project_id}/guarantee/quote"
        answer = await self._call("POST", path, {"guarantee": terms}, repeatable=True)
        return self._parse(answer, GuaranteeQuote).refusal

    async def delete_group(self, group_id: UUID) -> None:
        await self._call("DELETE", f"/v1/groups/{group_id}", repeatable=True)

    async def events(self, after: int, wait_ms: int) -> Events:
        answer = await self._call("GET", f"/v1/events?after={after}&wait_ms={wait_ms}")
        return self._parse(answer, Events)

    async def _call(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        repeatable: bool = False,
        may_be_absent: bool = False,
        timeout: float = limits.COORDINATOR_TIMEOUT_S,  # noqa: ASYNC109 - handed to the client
    ) -> httpx2.Response:
        repeatable = repeatable or method == "GET"
        find_until = time.monotonic() + min(timeout, limits.COORDINATOR_FIND_S)
        sent = False
        for attempt in count(1):
            url = self._addresses.current
            try:
                answer = await self._request(method, url + path, body, timeout)
            except CoordinatorUnavailable as error:
                self._addresses.failed(url)
                sent = sent or error.sent
                # A coordinator that closed a kept connection is there. One that is slow would be so the next time.
                is_worth_it = len(self._addresses) > 1 if not error.sent else repeatable and not _is_slow(error)
                if not is_worth_it or (attempt > 1 and time.monotonic() >= find_until):
                    error.sent = sent
                    raise
                if len(self._addresses) == 1:
                    repeatable = False
                    continue
            else:
                problem = _problem(answer)
                if problem.get("code") != "not_leader":
                    return self._checked(answer, problem, method, path, may_be_absent or method in ("GET", "DELETE"))
                self._addresses.told(url, problem.get("leader"))
                if time.monotonic() >= find_until:
                    raise CoordinatorUnavailable(f"no coordinator leads: {problem.get('detail')}", sent=sent)
            jitter = random.uniform(0.5, 1.5)  # noqa: S311 - calls that failed together do not come again together
            await asyncio.sleep(limits.COORDINATOR_FIND_PAUSE_S * jitter)
        raise AssertionError("the loop returns or raises")

    async def _request(self, method: str, url: str, body: dict[str, Any] | None, timeout_s: float) -> httpx2.Response:
        headers: dict[str, str] = {}
        propagate.inject(headers)
        # Certificates name what a coordinator is, whatever its address.
        extensions = {"sni_hostname": NAME} if url.startswith("https:") else {}
        try:
            return await self._http.request(
                method, url, json=body, headers=headers, timeout=timeout_s, extensions=extensions
            )
        except httpx2.ConnectError as error:
            raise CoordinatorUnavailable(f"cannot connect: {error}", sent=False) from error
        except httpx2.TransportError as error:
            raise CoordinatorUnavailable(f"{type(error).__name__}: {error}", sent=True) from error

    def _checked(
        self, answer: httpx2.Response, problem: dict[str, Any], method: str, path: str, may_be_absent: bool
    ) -> httpx2.Response:
        if answer.is_success or (answer.status_code == 404 and may_be_absent):
            return answer
        if answer.status_code == 409 and problem.get("code") == "guarantee_refused":
            raise GuaranteeRefused(GuaranteeRefusal.model_validate(problem["refusal"]))
        if answer.status_code == 409 and problem.get("refusal"):
            raise Refused(Refusal.model_validate(problem["refusal"]))
        detail = str(problem.get("detail") or problem.get("title") or answer.text[:200])
        if answer.status_code in (400, 409, 422):  # 409 without a refusal: another group has the id, or had it
            errors = problem.get("errors") or [{}]
            raise RequestInvalid(detail, str(problem.get("code") or ""), str(errors[0].get("field") or ""))
        kind = CoordinatorUnavailable if answer.status_code in _AWAY else AnswerOdd
        raise kind(f"{method} {path}: {answer.status_code}: {detail}", sent=True)

    def _server(self, answer: httpx2.Response) -> ServerView | None:
        return None if answer.status_code == 404 else self._parse(answer, ServerView)

    def _parse_list(self, answer: httpx2.Response, model: type[Item]) -> list[Item]:
        try:
            return TypeAdapter(list[model]).validate_json(answer.content)  # type: ignore[valid-type]
        except ValidationError as error:
            raise AnswerOdd(f"answer does not follow the contract: {error}", sent=True) from error

    def _parse(self, answer: httpx2.Response, model: type[Model]) -> Model:
        try:
            return model.model_validate_json(answer.content)
        except ValidationError as error:
            raise AnswerOdd(f"answer does not follow the contract: {error}", sent=True) from error


def _problem(answer: httpx2.Response) -> dict[str, Any]:
    """The error in an answer; empty if it is none."""
    if answer.is_success:
        return {}
    try:
        problem = answer.json()
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}


def _is_slow(error: CoordinatorUnavailable) -> bool:
    return isinstance(error.__cause__, httpx2.TimeoutException)


def _said(sla: ObservedSla) -> dict[str, Any]:
    """Leaves out null fields, so that an older coordinator gets no field that it does not know."""
    said = sla.model_dump(mode="json", exclude_none=True)
    if sla.read_rate_per_s == 0:
        del said["read_rate_per_s"]
    return said
