"""Names of projects and groups, and groups that are protected from deletion."""

import httpx2
import psycopg
import pytest

from support.customer import SLA, Customer, problem


async def settle(caller: Customer | httpx2.AsyncClient, path: str, **body: object) -> httpx2.Response:
    if isinstance(caller, Customer):
        return await caller.request("PUT", f"{path}/settings", json=body)
    return await caller.put(f"{path}/settings", json=body)


def bearer(api: httpx2.AsyncClient, secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


async def test_a_group_gets_another_name_and_keeps_its_log(alice: Customer) -> None:
    group = await alice.create_group("orders")
    before = await alice.request("GET", f"/v1/groups/{group['id']}")
    renamed = await settle(alice, f"/v1/groups/{group['id']}", name="purchases")
    assert renamed.status_code == 200
    assert {**renamed.json(), "name": "orders"} == before.json()
    assert renamed.headers["ETag"] != before.headers["ETag"]
    events = await alice.get(f"/v1/groups/{group['id']}/events")
    assert events["items"][0]["message"] == "The group orders is called purchases now."
    assert (await alice.get("/v1/audit"))["items"][0]["operation"] == "change_group_settings"
    await alice.create_group("orders")  # its former name is free
    taken = problem(await settle(alice, f"/v1/groups/{group['id']}", name="orders"), 409, "name_taken")
    assert taken["errors"][0]["field"] == "name"


async def test_the_same_again_changes_nothing(alice: Customer) -> None:
    group = await alice.create_group("orders")
    before = await alice.request("GET", f"/v1/groups/{group['id']}")
    again = await settle(alice, f"/v1/groups/{group['id']}", name="orders")
    assert again.headers["ETag"] == before.headers["ETag"]
    stale = await alice.request(
        "PUT", f"/v1/groups/{group['id']}/settings", json={"name": "x"}, headers={"If-Match": '"9"'}
    )
    problem(stale, 412, "precondition_failed")


async def test_partitions_are_called_after_their_group(alice: Customer, owner: psycopg.Connection) -> None:
    group = await alice.create_group("orders", partitions=3)
    await alice.create_group("bills/2")
    problem(await settle(alice, f"/v1/groups/{group['id']}", name="bills"), 409, "name_taken")
    too_long = await settle(alice, f"/v1/groups/{group['id']}", name="x" * 99)
    problem(too_long, 422, "validation_failed")
    assert (await settle(alice, f"/v1/groups/{group['id']}", name="purchases")).status_code == 200
    names = owner.execute("SELECT name FROM groups ORDER BY coalesce(partition, 0), name").fetchall()
    assert [name for (name,) in names] == ["bills/2", "purchases", "purchases/1", "purchases/2"]
    part = (await alice.get(f"/v1/groups/{group['id']}/partitions"))["items"][1]["group_id"]
    problem(await settle(alice, f"/v1/groups/{part}", name="own"), 409, "group_is_partition")


async def test_a_protected_group_is_not_deleted(alice: Customer) -> None:
    made = await alice.post(
        f"/v1/projects/{alice.project_id}/groups", {"name": "orders", **SLA, "deletion_protection": True}
    )
    path = f"/v1/groups/{made.json()['id']}"
    assert made.json()["deletion_protection"]
    problem(await alice.request("DELETE", path), 409, "deletion_protected")
    assert (await alice.get(path))["status"] == "active"
    assert not (await settle(alice, path, name="orders")).json()["deletion_protection"], "left out: the default"
    assert (await alice.request("DELETE", path)).status_code == 204
    problem(await settle(alice, path, name="orders"), 404, "not_found")


async def test_a_key_that_leaked_takes_no_protection_away(alice: Customer, api: httpx2.AsyncClient) -> None:
    group = await alice.create_group("orders")
    key = bearer(api, (await alice.create_key(scopes=["manage"]))["secret"])
    path = f"/v1/groups/{group['id']}"
    body = {"name": "orders", "deletion_protection": True}
    assert (await api.put(f"{path}/settings", json=body, headers=key)).status_code == 200
    problem(await api.put(f"{path}/settings", json={"name": "orders"}, headers=key), 403, "permission_denied")
    problem(await api.delete(path, headers=key), 409, "deletion_protected")


async def test_a_key_for_some_groups_renames_within_its_names(alice: Customer, api: httpx2.AsyncClient) -> None:
    group = await alice.create_group("pay-in")
    key = bearer(api, (await alice.create_key(scopes=["manage:pay-*"]))["secret"])
    path = f"/v1/groups/{group['id']}/settings"
    problem(await api.put(path, json={"name": "orders"}, headers=key), 403, "permission_denied")
    assert (await api.put(path, json={"name": "pay-out"}, headers=key)).json()["name"] == "pay-out"


async def test_a_project_gets_another_name(alice: Customer) -> None:
    other = await alice.create_project("other")
    path = f"/v1/projects/{alice.project_id}"
    taken = problem(await settle(alice, path, name="other"), 409, "name_taken")
    assert taken["errors"][0]["field"] == "name"
    assert (await settle(alice, path, name="shop")).json()["name"] == "shop"
    assert (await alice.get(path))["name"] == "shop"
    assert (await settle(alice, path, name="shop")).status_code == 200, "the same again"
    problem(await settle(alice, f"/v1/projects/{other}", name=""), 422, "validation_failed")


@pytest.mark.parametrize("what", ["groups", "projects"])
async def test_of_another_organization_there_is_nothing(alice: Customer, bob: Customer, what: str) -> None:
    group = await alice.create_group("orders")
    path = {"groups": f"/v1/groups/{group['id']}", "projects": f"/v1/projects/{alice.project_id}"}[what]
    problem(await settle(bob, path, name="mine"), 404, "not_found")
