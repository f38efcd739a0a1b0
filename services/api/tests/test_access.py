"""The matrix of access: each operation, by each kind of caller, on its own organization and on another one."""

import re

import httpx2
import psycopg
import pytest
from quorate_harness.figures import FOLDER, Figure, keep

from support.access import BODIES, GROUP, NEEDS, OPERATIONS, ORDERED, PRIVATE, PUBLIC, WHO, Who, add_member, things_of
from support.customer import Customer, bearer, problem

# They are found and say that something else is missing.
MISSING = {"confirm_totp", "renew_recovery_codes", "begin_identity", "add_identity"}
# Names that are no secrets.
PLAIN = ("consumer", "offset", "quota")
# Names in addresses that are the same for every organization.
OF_NOBODY = {"quota"}
ENDLESS = {"stream_group"}  # test_live reads it


def test_nothing_is_forgotten() -> None:
    """A new endpoint fails here until the table says who may call it; a new resource until the matrix creates one."""
    assert {operation for _, _, operation in PRIVATE} == set(NEEDS)
    names = {part[1:-1] for _, path, _ in PRIVATE for part in path.split("/") if part.startswith("{")}
    assert names == {
        "project_id", "group_id", "key_id", "invoice_id", "budget_id", "consumer", "offset", "quota", "user_id",
        "invitation_id", "session_id", "passkey_id", "identity_id", "webhook_id", "delivery_id",
    }  # fmt: skip
    addressed = [each for each in PRIVATE if "{" in each[1]]
    cases = len(WHO) * (len(PRIVATE) + len(addressed)) + len(PRIVATE)
    note = f"{len(PRIVATE)} operations × {len(WHO)} callers on their own, {len(addressed)} on another organization's"
    keep([Figure("access_matrix_cases", cases, "cases", note=note)], "make test", FOLDER / "access.jsonl")


async def headers_of(
    who: Who, customer: Customer, owner: psycopg.Connection, operator: httpx2.AsyncClient
) -> dict[str, str] | None:
    """The caller's key, or the operator's view. None: it is the person's session."""
    if who.is_view:
        begun = await operator.post(
            f"/v1/operator/organizations/{customer.organization_id}/views", json={"reason": "matrix"}
        )
        assert begun.status_code == 201, begun.text
        return {"Authorization": f"Bearer {begun.json()['token']}"}
    if who.scopes is None:
        add_member(owner, customer.organization_id, "owner")  # an organization has one
        owner.execute(
            "UPDATE memberships SET role = %s WHERE organization_id = %s AND user_id = %s",
            (who.name, customer.organization_id, (await customer.get("/v1/me"))["user"]["id"]),
        )
        return None
    path = "/v1/organization/keys" if who.of_organization else f"/v1/projects/{customer.project_id}/keys"
    made = await customer.post(path, {"name": "matrix", "scopes": list(who.scopes)})
    return bearer(made.json())


async def call(
    customer: Customer, headers: dict[str, str] | None, method: str, path: str, operation: str
) -> httpx2.Response:
    body = {"organization_id": customer.organization_id} if operation == "switch_organization" else None
    body = body or BODIES.get(operation)
    key = {"Idempotency-Key": f"matrix-{operation}"} if operation == "make_commitment" else {}
    if headers is None:
        answer = await customer.request(method, path, json=body, headers=key)
        if "quorate_session" in answer.cookies:  # it goes on in another session
            customer.cookie, customer.csrf_token = answer.cookies["quorate_session"], answer.json()["csrf_token"]
        return answer
    return await customer.api.request(method, path, json=body, headers=headers | key)


@pytest.mark.parametrize("who", WHO, ids=lambda who: who.name)
async def test_each_caller_may_what_the_table_says(
    who: Who, alice: Customer, owner: psycopg.Connection, operator: httpx2.AsyncClient
) -> None:
    own = await things_of(alice, owner)
    headers = await headers_of(who, alice, owner, operator)
    for method, path, operation in ORDERED:
        if operation in ENDLESS:
            continue
        answer = await call(alice, headers, method, path.format(**own), operation)
        case = (who.name, operation, answer.status_code, answer.text[:300])
        if who.may(operation, path):
            assert answer.status_code not in (401, 403, 404) or operation in MISSING, case
            assert answer.status_code < 500, case
        elif "{group_id}" in path and not who.sees_group():
            problem(answer, 404, "not_found")
        else:
            assert answer.status_code == 403, case
            problem(answer, 403, "permission_denied")


@pytest.mark.parametrize("who", WHO, ids=lambda who: who.name)
async def test_nobody_reaches_another_organization(
    who: Who, alice: Customer, bob: Customer, owner: psycopg.Connection, operator: httpx2.AsyncClient
) -> None:
    theirs = await things_of(alice, owner)
    await bob.create_group(GROUP)
    headers = await headers_of(who, bob, owner, operator)
    for method, path, operation in PRIVATE:
        if set(re.findall(r"{(\w+)}", path)) <= OF_NOBODY:
            continue
        answer = await call(bob, headers, method, path.format(**theirs), operation)
        case = (who.name, operation, answer.status_code, answer.text[:300])
        assert answer.status_code in (403, 404), case
        if answer.status_code == 403:  # refused before the lookup, which tells nothing
            assert not who.may(operation, path), case
    for path in ("/v1/projects", "/v1/invoices", "/v1/spend", "/v1/organization/members", "/v1/me/sessions"):
        answer = await call(bob, headers, "GET", path, "")
        assert not any(
            identifier in answer.text
            for name, identifier in theirs.items()
            if name not in ("consumer", "offset", "quota")
        )
    assert (await alice.get(f"/v1/groups/{theirs['group_id']}"))["status"] == "active", "nothing was done to it"


async def test_nobody_without_a_login(api: httpx2.AsyncClient, alice: Customer, owner: psycopg.Connection) -> None:
    own = await things_of(alice, owner) | {"server_id": "1", "token_id": "0" * 16, "incident_id": "0" * 32}
    for method, path, operation in OPERATIONS:
        if operation not in PUBLIC and not path.startswith("/v1/status"):
            answer = await api.request(method, path.format(**own), json=BODIES.get(operation))
            problem(answer, 401, "not_authenticated")
