"""A logged-in customer, as tests use the API."""

import uuid
from dataclasses import dataclass, field
from typing import Any

import httpx2

PASSWORD = "correct horse battery"

SLA: dict[str, Any] = {
    "durability": "persistent",
    "replication_degree": 3,
    "request_size_bytes": 64,
    "rate_per_s": 1_000,
}


@dataclass
class Customer:
    api: httpx2.AsyncClient
    email: str
    cookie: str
    csrf_token: str
    organization_id: str
    project_id: str
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    async def sign_up(cls, api: httpx2.AsyncClient, email: str) -> "Customer":
        answer = await api.post(
            "/v1/signup", json={"email": email, "password": PASSWORD, "organization": email.split("@", maxsplit=1)[0]}
        )
        assert answer.status_code == 201, answer.text
        cookie = answer.cookies["quorate_session"]
        api.cookies.clear()
        body = answer.json()
        return cls(api, email, cookie, body["csrf_token"], body["organization"]["id"], body["project"]["id"])

    async def request(self, method: str, path: str, **options: Any) -> httpx2.Response:
        headers = {"Cookie": f"quorate_session={self.cookie}", "X-CSRF-Token": self.csrf_token}
        headers |= options.pop("headers", {})
        answer = await self.api.request(method, path, headers=headers, **options)
        self.api.cookies.clear()
        return answer

    async def get(self, path: str, **options: Any) -> Any:
        answer = await self.request("GET", path, **options)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def post(self, path: str, body: Any, key: str | None = None) -> httpx2.Response:
        headers = {"Idempotency-Key": key} if key else {}
        return await self.request("POST", path, json=body, headers=headers)

    async def create_group(self, name: str = "orders", **sla: Any) -> dict[str, Any]:
        answer = await self.post(f"/v1/projects/{self.project_id}/groups", {"name": name, **SLA, **sla})
        assert answer.status_code == 201, answer.text
        return dict(answer.json())

    async def create_key(self, *, project_id: str | None = None, **options: Any) -> dict[str, Any]:
        answer = await self.post(
            f"/v1/projects/{project_id or self.project_id}/keys",
            {"name": "ci", "scopes": ["append", "read", "manage"], **options},
        )
        assert answer.status_code == 201, answer.text
        return dict(answer.json())

    async def create_organization_key(self) -> dict[str, Any]:
        answer = await self.post("/v1/organization/keys", {"name": "terraform"})
        assert answer.status_code == 201, answer.text
        return dict(answer.json())

    async def create_project(self, name: str) -> str:
        answer = await self.post("/v1/projects", {"name": name})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])


def bearer(key: dict[str, Any]) -> dict[str, str]:
    return {"Authorization": f"Bearer {key['secret']}"}


def new_key() -> str:
    return uuid.uuid4().hex


def problem(answer: httpx2.Response, status: int, code: str) -> dict[str, Any]:
    """Check that the answer is that problem and complete. Returns its body."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body = dict(answer.json())
    assert body["code"] == code, body
    assert body["status"] == status
    assert body["type"].endswith(f"/errors/{code}")
    assert body["title"]
    assert body["detail"]
    assert body["request_id"] == answer.headers["x-request-id"]
    return body
