"""A customer of the service: signs up, buys a group, looks at usage, SLA report and invoice.

Speaks HTTP as the portal does (docs/internals/api.md), with the session of the one who signed up.
"""

from __future__ import annotations

import secrets
import time
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx2

TIMEOUT_S = 15.0
ACTIVE_TIMEOUT_S = 30.0
POLL_S = 0.1
ENTRIES_LINE = "appends"  # the kind of the invoice line that counts committed entries


class Refused(Exception):
    """The API said no; `problem` is its RFC 9457 answer."""

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        self.status = status
        self.problem = problem
        super().__init__(f"{status} {problem.get('code', '')}: {problem.get('detail') or problem.get('title', '')}")


# Tests append with the key, and manage groups with it by SDK.
SCOPES = ["append", "read", "manage"]


class Customer:
    """One organization with one project and one API key. Close it, or use it in `with`."""

    def __init__(self, api_url: str, organization: str) -> None:
        """Sign up. The e-mail address is new each time, so that a database may be used again."""
        self.api_url = api_url
        self.organization = organization
        self.email = f"ops-{secrets.token_hex(4)}@{organization}.example"
        self.password = secrets.token_urlsafe(18)
        self._http = httpx2.Client(base_url=api_url, timeout=TIMEOUT_S)
        account = {"email": self.email, "password": self.password, "organization": organization}
        signed_up = self.post("/v1/signup", account)
        self._http.headers["X-CSRF-Token"] = signed_up["csrf_token"]
        self.project_id: str = signed_up["project"]["id"]
        key = self.post(f"/v1/projects/{self.project_id}/keys", {"name": "demo", "scopes": SCOPES})
        self.api_key: str = key["secret"]

    def quote(self, sla: dict[str, Any]) -> dict[str, Any]:
        return self.post("/v1/quotes", sla)

    def create_group(self, name: str, sla: dict[str, Any]) -> dict[str, Any]:
        """Buy a group and wait until it is active; `Refused` when admission says no."""
        group = self.post(f"/v1/projects/{self.project_id}/groups", {"name": name, **sla})
        deadline = time.monotonic() + ACTIVE_TIMEOUT_S
        while group["status"] != "active":
            if time.monotonic() > deadline:
                raise TimeoutError(f"group {name} is {group['status']} after {ACTIVE_TIMEOUT_S:.0f} s, not active")
            time.sleep(POLL_S)
            group = self.get(f"/v1/groups/{group['id']}")
        return group

    def placement(self, group_id: str) -> dict[str, Any]:
        return self.get(f"/v1/groups/{group_id}/placement")

    def usage(self, group_id: str, since: datetime) -> dict[str, Any]:
        until = datetime.now(UTC) + timedelta(minutes=2)  # the present minute counts too
        period = {"from": _instant(since), "to": _instant(until)}
        return self.get(f"/v1/groups/{group_id}/usage", period)

    def sla_report(self, group_id: str) -> dict[str, Any]:
        return self.get(f"/v1/groups/{group_id}/sla", {"month": f"{datetime.now(UTC):%Y-%m}"})

    def settled_invoice(self, group_id: str, expected: int, timeout_s: float) -> dict[str, Any]:
        """The invoice so far, once it bills `expected` entries or the time for that is over."""
        deadline = time.monotonic() + timeout_s
        while True:
            invoice = self.get("/v1/invoices/current")
            if billed_entries(invoice, group_id) == expected or time.monotonic() > deadline:
                return invoice
            time.sleep(POLL_S)

    def get(self, path: str, query: dict[str, str] | None = None) -> dict[str, Any]:
        return _answer(self._http.get(path, params=query))

    def get_bytes(self, path: str) -> bytes:
        """An answer that is a file."""
        response = self._http.get(path)
        if response.status_code >= 400:
            _answer(response)
        return response.content

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return _answer(self._http.post(path, json=body, headers={"Idempotency-Key": str(uuid4())}))

    def put(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return _answer(self._http.put(path, json=body))

    def patch(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return _answer(self._http.patch(path, json=body))

    def delete(self, path: str) -> None:
        response = self._http.delete(path, headers={"Idempotency-Key": str(uuid4())})
        if response.status_code >= 400:
            _answer(response)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Customer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def billed_entries(invoice: dict[str, Any], group_id: str) -> int:
    """The quantity of entries on the invoice's lines for one group."""
    lines = [line for line in invoice["lines"] if line["group_id"] == group_id and line["kind"] == ENTRIES_LINE]
    return sum(int(line["quantity"]) for line in lines)


def _answer(response: httpx2.Response) -> dict[str, Any]:
    try:
        body = response.json()
    except ValueError:
        body = {"title": response.text[:200] or "an empty answer"}
    if response.status_code >= 400:
        raise Refused(response.status_code, body)
    assert isinstance(body, dict), f"the API answered something else than an object: {body!r}"
    return body


def _instant(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
