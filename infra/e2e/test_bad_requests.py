"""Bad requests to the API: a problem document with a stable code, never a 500, no partial effect."""

from __future__ import annotations

import uuid
from typing import Any

import httpx2
import pytest

from conftest import Owner
from quorate_harness.customer import Refused
from quorate_local import Stack

SLA = {"durability": "in_memory", "replication_degree": 3, "request_size_bytes": 64, "rate_per_s": 100}


def problem(response: httpx2.Response, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"].startswith("application/problem+json")
    body: dict[str, Any] = response.json()
    assert {"type", "title", "status", "code", "request_id"} <= body.keys()
    assert body["status"] == status
    return body


def post_raw(owner: Owner, path: str, content: bytes, **headers: str) -> httpx2.Response:
    all_headers = {
        "Authorization": f"Bearer {owner.customer.api_key}",
        "Content-Type": "application/json",
        "Idempotency-Key": str(uuid.uuid4()),
        **headers,
    }
    return httpx2.post(owner.customer.api_url + path, content=content, headers=all_headers, timeout=15)


def groups_path(owner: Owner) -> str:
    return f"/v1/projects/{owner.customer.project_id}/groups"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b'{"name": }', b"\xff\xfe", b'{"name":"a"} extra'])
def test_malformed_json(alice: Owner, content: bytes) -> None:
    response = post_raw(alice, groups_path(alice), content)
    assert response.status_code in (400, 422)
    problem(response, response.status_code)


@pytest.mark.parametrize("field", ["name", *SLA])
def test_a_missing_field_is_named(alice: Owner, field: str) -> None:
    body = {"name": "incomplete", **SLA}
    del body[field]
    with pytest.raises(Refused) as refused:
        alice.customer.post(groups_path(alice), body)
    assert refused.value.status == 422
    assert any(field in error["field"] for error in refused.value.problem["errors"])


def test_an_extra_field_is_named(alice: Owner) -> None:
    with pytest.raises(Refused) as refused:
        alice.customer.post(groups_path(alice), {"name": "too-much", **SLA, "turbo": True})
    assert refused.value.status == 422
    assert any("turbo" in error["field"] for error in refused.value.problem["errors"])


@pytest.mark.parametrize(
    "change",
    [
        {"replication_degree": 0},
        {"replication_degree": 8},
        {"rate_per_s": 0},
        {"rate_per_s": -5},
        {"rate_per_s": "many"},
        {"request_size_bytes": 1 << 30},
        {"durability": "wishful"},
        {"min_replicas": 4},
        {"name": ""},
    ],
)
def test_a_value_out_of_range_is_named(alice: Owner, change: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refused:
        alice.customer.post(groups_path(alice), {"name": "odd", **SLA, **change})
    assert refused.value.status == 422
    [field] = change
    assert any(field in error["field"] for error in refused.value.problem["errors"])


def test_an_sla_that_cannot_be_kept_is_refused_with_the_largest_that_can(alice: Owner) -> None:
    with pytest.raises(Refused) as refused:
        alice.customer.post(groups_path(alice), {"name": "everything", **SLA, "rate_per_s": 50_000_000})
    assert (refused.value.status, refused.value.problem["code"]) == (409, "admission_refused")
    refusal = refused.value.problem["refusal"]
    assert refusal["scarce_resource"]
    assert refusal["message"]
    assert refusal["largest_sla_that_fits"] is None or refusal["largest_sla_that_fits"]["rate_per_s"] < 50_000_000


def test_requests_without_a_key_or_with_a_wrong_one_are_refused(alice: Owner, stack: Stack) -> None:
    url = stack.api_url + groups_path(alice)
    problem(httpx2.get(url, timeout=15), 401)
    for key in ("qk_wrong", "!", _with_last_changed(alice.customer.api_key)):
        problem(httpx2.get(url, headers={"Authorization": f"Bearer {key}"}, timeout=15), 401)


def _with_last_changed(key: str) -> str:
    return key[:-1] + ("y" if key.endswith("x") else "x")


@pytest.mark.parametrize("part", ["", "/handle", "/placement", "/usage", "/sla", "/events", "/metrics"])
def test_another_tenants_group_does_not_exist(alice: Owner, bob: Owner, part: str) -> None:
    group = bob.groups["in_memory"]["id"]
    with pytest.raises(Refused) as refused:
        alice.customer.get(f"/v1/groups/{group}{part}")
    assert refused.value.status == 404


def test_another_tenants_group_cannot_be_deleted(alice: Owner, bob: Owner) -> None:
    group = bob.groups["in_memory"]["id"]
    headers = {"Authorization": f"Bearer {alice.customer.api_key}"}
    problem(httpx2.delete(f"{alice.customer.api_url}/v1/groups/{group}", headers=headers, timeout=15), 404)
    assert bob.customer.get(f"/v1/groups/{group}")["status"] == "active"


def test_the_same_key_with_the_same_body_answers_the_same(alice: Owner) -> None:
    key = str(uuid.uuid4())
    body = b'{"name":"twice","durability":"in_memory","replication_degree":1,"request_size_bytes":64,"rate_per_s":10}'
    first = post_raw(alice, groups_path(alice), body, **{"Idempotency-Key": key})
    second = post_raw(alice, groups_path(alice), body, **{"Idempotency-Key": key})
    assert first.status_code == second.status_code == 201
    assert first.json()["id"] == second.json()["id"]
    other = post_raw(alice, groups_path(alice), body.replace(b"twice", b"thrice"), **{"Idempotency-Key": key})
    assert problem(other, 422)["code"] == "idempotency_key_reused"


def test_a_path_that_is_not_there(alice: Owner) -> None:
    problem(httpx2.get(f"{alice.customer.api_url}/v1/nonsense", timeout=15), 404)
