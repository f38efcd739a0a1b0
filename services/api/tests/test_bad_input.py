"""Bad input gets a clear 4xx and has no other effect."""

from typing import Any

import httpx2
import pytest

from support.customer import SLA, Customer, problem

GROUP = {"name": "g", **SLA}


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in GROUP.items() if key != name}


@pytest.mark.parametrize(
    "raw",
    [b"{", b"", b"nul", b'{"name": "a",}', b"\xff\xfe", b'{"name": "\xc3\x28"}', b"[" * 20_000, b'{"a":' * 9_000,
     b'{"name": NaN}'],
)  # fmt: skip
async def test_malformed_json(alice: Customer, raw: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    answer = await alice.request("POST", "/v1/projects", content=raw, headers=headers)
    assert answer.status_code in (400, 422), answer.text
    problem(answer, answer.status_code, "malformed_json" if answer.status_code == 400 else "validation_failed")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (without("rate_per_s"), "rate_per_s"),
        (without("name"), "name"),
        (GROUP | {"colour": "red"}, "colour"),
        (GROUP | {"rate_per_s": "1000"}, "rate_per_s"),
        (GROUP | {"rate_per_s": 1.5}, "rate_per_s"),
        (GROUP | {"rate_per_s": True}, "rate_per_s"),
        (GROUP | {"rate_per_s": 0}, "rate_per_s"),
        (GROUP | {"rate_per_s": -1}, "rate_per_s"),
        (GROUP | {"rate_per_s": 10**30}, "rate_per_s"),
        (GROUP | {"rate_per_s": None}, "rate_per_s"),
        (GROUP | {"durability": "eternal"}, "durability"),
        (GROUP | {"replication_degree": 8}, "replication_degree"),
        (GROUP | {"replication_degree": 3, "min_replicas": 4}, "min_replicas"),
        (GROUP | {"request_size_bytes": (1 << 20) + 1}, "request_size_bytes"),
        (GROUP | {"name": ""}, "name"),
        (GROUP | {"name": "   "}, "name"),
        (GROUP | {"name": "x" * 101}, "name"),
        (GROUP | {"name": "a\u0000b"}, "name"),
        (GROUP | {"name": "a\nb"}, "name"),
        (GROUP | {"region": "../../etc"}, "region"),
        ([GROUP], "body"),
        ("text", "body"),
        (None, "body"),
    ],
)
async def test_fields_at_fault_are_named(alice: Customer, body: Any, field: str) -> None:
    answer = await alice.post(f"/v1/projects/{alice.project_id}/groups", body)
    errors = problem(answer, 422, "validation_failed")["errors"]
    assert field in [error["field"] for error in errors], errors
    assert (await alice.get(f"/v1/projects/{alice.project_id}/groups"))["items"] == []


async def test_unpaired_surrogates(alice: Customer) -> None:
    headers = {"Content-Type": "application/json"}
    answer = await alice.request("POST", "/v1/projects", content=b'{"name": "\\ud800"}', headers=headers)
    problem(answer, 422, "validation_failed")


async def test_large_bodies(alice: Customer) -> None:
    answer = await alice.post("/v1/projects", {"name": "x" * 70_000})
    problem(answer, 413, "body_too_large")


async def test_other_media_types(alice: Customer) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        answer = await alice.request("POST", "/v1/projects", content=b'{"name":"a"}', headers={"Content-Type": kind})
        problem(answer, 415, "unsupported_media_type")


@pytest.mark.parametrize("path", ["/v1/nowhere", "/v1/groups", "/v1/", "/v1/projects/"])
async def test_unknown_addresses(alice: Customer, path: str) -> None:
    problem(await alice.request("GET", path), 404, "not_found")


async def test_other_methods(alice: Customer) -> None:
    answer = await alice.request("PATCH", "/v1/projects")
    problem(answer, 405, "method_not_allowed")
    assert "GET" in answer.headers["allow"]


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=201", "limit=x", "limit=1e9", "limit=" + "9" * 400],
)
async def test_bad_limits(alice: Customer, query: str) -> None:
    problem(await alice.request("GET", f"/v1/projects?{query}"), 422, "validation_failed")


async def test_bad_ids(alice: Customer) -> None:
    for bad in ("x", "0" * 36, "%00", "%ff"):
        problem(await alice.request("GET", f"/v1/groups/{bad}"), 422, "validation_failed")


@pytest.mark.parametrize(
    "query",
    [
        "usage?from=yesterday",
        "usage?from=2026-01-01T00:00:00",
        "usage?from=2026-02-01T00:00:00Z&to=2026-01-01T00:00:00Z",
        "usage?from=2026-01-01T00:00:00Z&to=2026-02-01T00:00:00Z",
        "usage?to=9999-12-31T23:59:59Z",
        "usage?from=0001-01-01T00:00:00Z",
        "metrics?minutes=0",
        "metrics?minutes=1441",
        "sla?month=2026-13",
        "sla?month=26-01",
        "sla?month=2026-01-01",
        "sla?month=%D9%A2026-01",
    ],
)
async def test_bad_periods(alice: Customer, query: str) -> None:
    group = await alice.create_group()
    errors = problem(await alice.request("GET", f"/v1/groups/{group['id']}/{query}"), 422, "validation_failed")[
        "errors"
    ]
    assert errors


@pytest.mark.parametrize(
    "body",
    [
        {"email": "no-at-sign", "password": "long enough 1", "organization": "o"},
        {"email": "a@example.com", "password": "short", "organization": "o"},
        {"email": "a@example.com", "password": "x" * 257, "organization": "o"},
        {"email": "a@example.com", "password": "nul\u0000 nul nul", "organization": "o"},
        {"email": "a@example.com", "password": "long enough 1"},
        {"email": "a@example.com", "password": "long enough 1", "organization": "o", "admin": True},
    ],
)
async def test_bad_sign_ups(api: httpx2.AsyncClient, body: Any) -> None:
    answer = await api.post("/v1/signup", json=body)
    text = problem(answer, 422, "validation_failed")
    assert body["password"] not in str(text), "a password is not echoed"
