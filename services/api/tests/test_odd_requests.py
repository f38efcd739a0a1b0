"""Requests that are odd in ways which the contract does not name: none is a fault of the service, none is lost."""

import httpx2
import psycopg
import pytest

from quorate_api.http.standing import OF_PEOPLE
from support.customer import Customer, problem


@pytest.mark.parametrize("body", [b"x", b'{"a":"\\ud800"}', b'{"a":"' + b"a" * 60_000 + b'"}'])
async def test_a_body_that_an_operation_does_not_take_is_left_out_of_the_log(
    alice: Customer, owner: psycopg.Connection, body: bytes
) -> None:
    """The change happens, and the event is as small as any other."""
    key = await alice.create_key()
    headers = {"Content-Type": "application/json"}
    answer = await alice.request("DELETE", f"/v1/keys/{key['id']}", content=body, headers=headers)
    assert answer.status_code == 204, answer.text
    assert (await alice.get(f"/v1/projects/{alice.project_id}/keys"))["items"] == []
    newest = (await alice.get("/v1/audit"))["items"][0]
    assert (newest["operation"], newest["request"]) == ("revoke_key", None)


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00", "0001-01-01T00:00:00Z", "2026-12-01T00:00:00", "yesterday"])
async def test_a_time_needs_its_offset_and_is_of_this_age(alice: Customer, at: str) -> None:
    group = await alice.create_group()
    answer = await alice.request("GET", f"/v1/groups/{group['id']}/entries", params={"at": at})
    assert problem(answer, 422, "validation_failed")["errors"][0]["field"] == "at"


async def test_organizations_are_not_searched_by_control_characters(operator: httpx2.AsyncClient) -> None:
    answer = await operator.get("/v1/operator/organizations", params={"search": "a\x00b"})
    problem(answer, 422, "validation_failed")


async def test_people_keep_their_accounts_in_any_organization(api: httpx2.AsyncClient) -> None:
    """Each change below `/v1/me` is of the person, whatever becomes of the organization."""
    contract = (await api.get("/v1/openapi.json")).json()
    changes = {
        operation["operationId"]
        for path, methods in contract["paths"].items()
        for method, operation in methods.items()
        if path.startswith("/v1/me/") and method != "get"
    }
    assert len(changes) > 10
    assert changes <= OF_PEOPLE
