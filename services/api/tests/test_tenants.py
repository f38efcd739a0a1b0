"""Operators and one organization: quotas and requests for more, the log of admissions, and views."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import psycopg
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.security import views
from quorate_api.worker.admissions import forget_admissions
from support.customer import SLA, Customer, problem
from support.mailbox import Mailbox

Operator = httpx2.AsyncClient


async def quota_of(customer: Customer, code: str) -> dict[str, Any]:
    return next(each for each in (await customer.get("/v1/quotas"))["items"] if each["code"] == code)


async def ask(customer: Customer, code: str, wanted: int) -> httpx2.Response:
    return await customer.request(
        "PUT", f"/v1/quotas/{code}/request", json={"wanted": wanted, "reason": "a load test in May"}
    )


async def test_a_greater_quota_is_asked_for_and_given(
    alice: Customer, operator: Operator, mailbox: Mailbox, owner: psycopg.Connection
) -> None:
    owner.execute("UPDATE users SET email_verified_at = now()")
    code = "projects"
    usual = await quota_of(alice, code)
    assert (usual["is_default"], usual["requested"]) == (True, None)
    problem(await ask(alice, code, usual["limit"]), 422, "validation_failed")
    problem(await ask(alice, "nonsense", 10**6), 404, "not_found")
    assert (await ask(alice, code, 30)).status_code == 200
    assert (await ask(alice, code, 40)).status_code == 200, "another request takes its place"
    assert (await quota_of(alice, code))["requested"] == 40
    (waiting,) = (await operator.get("/v1/operator/quota-requests")).json()["items"]
    assert (waiting["organization_name"], waiting["code"], waiting["wanted"]) == ("alice", code, 40)
    assert (waiting["asked_by"], waiting["reason"]) == (alice.email, "a load test in May")

    path = f"/v1/operator/organizations/{alice.organization_id}/quotas"
    answer = await operator.put(f"{path}/{code}", json={"limit": 35})
    assert answer.status_code == 200, answer.text
    given = await quota_of(alice, code)
    assert (given["limit"], given["is_default"], given["requested"]) == (35, False, None)
    assert (await operator.get("/v1/operator/quota-requests")).json()["items"] == []
    (subject, text) = (await mailbox.fetch(alice.email))[-1]
    assert "35" in subject
    assert "Projects" in text
    answer = await operator.delete(f"{path}/{code}")
    assert answer.json() == (await operator.get(path)).json()
    assert (await quota_of(alice, code))["limit"] == usual["limit"]
    events = (await alice.get("/v1/audit"))["items"]
    assert [event["operation"] for event in events[:3]] == [
        "reset_organization_quota", "set_organization_quota", "request_quota",
    ]  # fmt: skip
    problem(await operator.put(f"{path}/nonsense", json={"limit": 1}), 404, "not_found")
    problem(await operator.put(f"{path}/{code}", json={"limit": -1}), 422, "validation_failed")


async def test_a_request_is_declined_or_withdrawn(
    alice: Customer, operator: Operator, mailbox: Mailbox, owner: psycopg.Connection
) -> None:
    owner.execute("UPDATE users SET email_verified_at = now()")
    assert (await ask(alice, "projects", 40)).status_code == 200
    path = f"/v1/operator/organizations/{alice.organization_id}/quotas/projects/decline"
    assert (await operator.post(path, json={"reason": "Not in this region."})).status_code == 204
    assert "Not in this region." in (await mailbox.fetch(alice.email))[-1][1]
    problem(await operator.post(path, json={"reason": "Again."}), 404, "not_found")
    assert (await ask(alice, "projects", 40)).status_code == 200
    withdrawn = await alice.request("DELETE", "/v1/quotas/projects/request")
    assert withdrawn.status_code == 200
    problem(await alice.request("DELETE", "/v1/quotas/projects/request"), 404, "not_found")
    assert (await operator.get("/v1/operator/quota-requests")).json()["items"] == []


async def test_a_quota_set_by_operators_holds(alice: Customer, operator: Operator) -> None:
    path = f"/v1/operator/organizations/{alice.organization_id}/quotas/groups_per_project"
    assert (await operator.put(path, json={"limit": 1})).status_code == 200
    await alice.create_group("first")
    refused = await alice.post(f"/v1/projects/{alice.project_id}/groups", {"name": "second", **SLA})
    problem(refused, 403, "quota_exceeded")


async def test_admissions_are_noted_with_the_reason_of_a_refusal(
    alice: Customer, operator: Operator, worker_engine: AsyncEngine
) -> None:
    await alice.create_group("first")
    path = f"/v1/projects/{alice.project_id}/groups"
    for _ in range(2):
        huge = await alice.post(path, {"name": "huge", **SLA, "rate_per_s": 5_000_000})
        problem(huge, 409, "admission_refused")
    quota = f"/v1/operator/organizations/{alice.organization_id}/quotas/total_rate_per_s"
    assert (await operator.put(quota, json={"limit": 1_500})).status_code == 200
    problem(await alice.post(path, {"name": "beyond", **SLA}), 403, "quota_exceeded")
    problem(await alice.post(path, {"name": "first", **SLA}), 409, "name_taken")  # is about no admission
    found = (await operator.get("/v1/operator/admissions")).json()["items"]
    assert [(each["outcome"], each["code"]) for each in found] == [
        ("refused", "quota_exceeded"), ("refused", "admission_refused"), ("refused", "admission_refused"),
        ("admitted", None),
    ]  # fmt: skip
    assert found[1]["asked"]["name"] == "huge"
    assert found[1]["organization_name"] == "alice"
    assert found[1]["reason"] == "insufficient_capacity"
    assert found[1]["scarce_resource"]
    assert found[1]["message"]
    refused = (await operator.get("/v1/operator/admissions", params={"outcome": "refused", "limit": 1})).json()
    assert len(refused["items"]) == 1
    assert refused["next_cursor"]
    counts = (await operator.get("/v1/operator/admissions/counts")).json()["items"]
    assert (counts[0]["code"], counts[0]["count"]) == ("admission_refused", 2)
    await forget_admissions(worker_engine, datetime.now(UTC) + timedelta(seconds=limits.ADMISSIONS_KEPT_S + 1))
    assert (await operator.get("/v1/operator/admissions")).json()["items"] == []


async def test_an_operator_looks_at_an_organization_and_changes_nothing(
    alice: Customer, bob: Customer, operator: Operator, api: httpx2.AsyncClient
) -> None:
    group, other = await alice.create_group("orders"), await bob.create_group("others")
    path = f"/v1/operator/organizations/{alice.organization_id}/views"
    problem(await operator.post(path, json={}), 422, "validation_failed")
    begun = await operator.post(path, json={"reason": "Ticket 4711"})
    assert begun.status_code == 201, begun.text
    headers = {"Authorization": f"Bearer {begun.json()['token']}"}
    me = (await api.get("/v1/me", headers=headers)).json()
    assert me["organization"]["name"] == "alice"
    assert me["viewed_by"]
    assert me["permissions"] == ["billing", "team", "view"]
    for read in (f"/v1/groups/{group['id']}", "/v1/quotas", "/v1/invoices", "/v1/organization/members"):
        assert (await api.get(read, headers=headers)).status_code == 200, read
    for beyond in (f"/v1/groups/{group['id']}/handle", f"/v1/groups/{group['id']}/entries", "/v1/audit"):
        problem(await api.get(beyond, headers=headers), 403, "permission_denied")
    problem(await api.get(f"/v1/groups/{other['id']}", headers=headers), 404, "not_found")
    for method, change in (("DELETE", f"/v1/groups/{group['id']}"), ("PUT", "/v1/budgets"), ("POST", "/v1/logout")):
        problem(await api.request(method, change, headers=headers, json={}), 403, "permission_denied")
    event = (await alice.get("/v1/audit"))["items"][0]
    assert (event["operation"], event["actor"]["kind"]) == ("view_organization", "operator")
    assert event["request"] == {"reason": "Ticket 4711"}
    ours = (await operator.get("/v1/operator/audit")).json()["items"][0]
    assert ours["operation"] == "view_organization"


async def test_a_view_ends_and_cannot_be_made_by_others(
    alice: Customer, operator: Operator, api: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "VIEW_S", -1)
    path = f"/v1/operator/organizations/{alice.organization_id}/views"
    token = (await operator.post(path, json={"reason": "late"})).json()["token"]
    problem(await api.get("/v1/me", headers={"Authorization": f"Bearer {token}"}), 401, "session_expired")
    for forged in (views.PREFIX, f"{views.PREFIX}x.y", token[:-1] + ("0" if token[-1] != "0" else "1")):
        problem(await api.get("/v1/me", headers={"Authorization": f"Bearer {forged}"}), 401, "session_expired")
    problem(await operator.post(f"/v1/operator/organizations/{alice.project_id}/views", json={"reason": "x"}), 404,
            "not_found")  # fmt: skip
