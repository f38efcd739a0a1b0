"""API keys: scopes on some groups, expiry, rotation, and the end of their tokens at servers."""

import asyncio
import re
import uuid
import zlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import jwt
import psycopg
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from quorate_api import limits
from quorate_api.http.services import Services
from quorate_api.worker.revocations import Revoker
from support.coordinator import FakeCoordinator
from support.customer import SLA, Customer, bearer, problem


@pytest.fixture
def revoker(worker_engine: AsyncEngine, services: Services) -> Revoker:
    return Revoker(worker_engine, services.coordinator)


async def handle_of(alice: Customer, group: dict[str, Any], key: dict[str, Any]) -> httpx2.Response:
    return await alice.api.get(f"/v1/groups/{group['id']}/handle", headers=bearer(key))


def claims_of(handle: httpx2.Response) -> dict[str, Any]:
    assert handle.status_code == 200, handle.text
    return jwt.decode(handle.json()["token"], options={"verify_signature": False})


async def test_a_key_of_some_groups_sees_no_others(alice: Customer) -> None:
    pay, orders = await alice.create_group("pay-eu"), await alice.create_group("orders")
    key = await alice.create_key(scopes=["append:pay-*", "read:pay-eu", "manage:team-*"])
    listed = await alice.api.get(f"/v1/projects/{alice.project_id}/groups", headers=bearer(key))
    assert [group["name"] for group in listed.json()["items"]] == ["pay-eu"]
    assert claims_of(await handle_of(alice, pay, key))["grants"][0]["ops"] == ["append", "read"]
    for path in ("", "/handle", "/usage", "/sla", "/events", "/placement", "/partitions"):
        answer = await alice.api.get(f"/v1/groups/{orders['id']}{path}", headers=bearer(key))
        problem(answer, 404, "not_found")
    problem(await alice.api.delete(f"/v1/groups/{pay['id']}", headers=bearer(key)), 403, "permission_denied")
    path = f"/v1/projects/{alice.project_id}/groups"
    problem(await alice.api.post(path, json={"name": "mine", **SLA}, headers=bearer(key)), 403, "permission_denied")
    made = await alice.api.post(path, json={"name": "team-a", **SLA}, headers=bearer(key))
    assert made.status_code == 201, made.text
    assert made.json()["handle"] is None, "it manages, and neither appends nor reads"
    me = (await alice.api.get("/v1/me", headers=bearer(key))).json()
    assert me["permissions"] == ["append:pay-*", "manage:team-*", "read:pay-eu"]
    for beside in ("/v1/quotas", f"/v1/projects/{alice.project_id}/guarantee", f"/v1/projects/{alice.project_id}/keys"):
        problem(await alice.api.get(beside, headers=bearer(key)), 403, "permission_denied")


async def test_names_in_scopes_are_no_patterns_of_sql(alice: Customer) -> None:
    for name in ("a%b", "a_b", "axb"):
        await alice.create_group(name)
    for scope, names in (("read:a%*", ["a%b"]), ("read:a_*", ["a_b"]), ("read:a*", ["axb", "a_b", "a%b"])):
        key = await alice.create_key(scopes=[scope])
        listed = await alice.api.get(f"/v1/projects/{alice.project_id}/groups", headers=bearer(key))
        assert [group["name"] for group in listed.json()["items"]] == names


async def test_partitions_belong_to_their_groups_scope(alice: Customer) -> None:
    group = await alice.create_group(partitions=2)
    parts = (await alice.get(f"/v1/groups/{group['id']}/partitions"))["items"]
    key = await alice.create_key(scopes=["read:orders"])
    for part in parts:
        answer = await alice.api.get(f"/v1/groups/{part['group_id']}/usage", headers=bearer(key))
        assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("scopes", [[], ["fly"], ["append:"], ["view"], ["administer"], ["billing:x"], ["append"] * 33])
async def test_bad_scopes_are_named(alice: Customer, scopes: list[str]) -> None:
    answer = await alice.post(f"/v1/projects/{alice.project_id}/keys", {"name": "k", "scopes": scopes})
    assert problem(answer, 422, "validation_failed")["errors"][0]["field"].startswith("scopes")


async def test_a_key_makes_keys_within_its_own_scopes(alice: Customer) -> None:
    scopes_of_maker = ["administer", "append:pay-*", "manage"]
    answer = await alice.post("/v1/organization/keys", {"name": "iac", "scopes": scopes_of_maker})
    maker = answer.json()
    assert maker["scopes"] == scopes_of_maker
    path = f"/v1/projects/{alice.project_id}/keys"

    async def make(*scopes: str) -> httpx2.Response:
        return await alice.api.post(path, json={"name": "app", "scopes": scopes}, headers=bearer(maker))

    for scopes in (["append:pay-eu"], ["append:pay-*", "manage:x"], ["manage"]):
        assert (await make(*scopes)).status_code == 201
    for scopes in (["append"], ["read"], ["append:pa*"], ["append:pay-eu", "billing"]):
        problem(await make(*scopes), 403, "permission_denied")
    strong = await alice.create_key(scopes=["read"])
    for method, tail in (("DELETE", ""), ("POST", "/rotate")):
        address = f"/v1/keys/{strong['id']}{tail}"
        answer = await alice.api.request(method, address, json={}, headers=bearer(maker))
        problem(answer, 403, "permission_denied")


async def test_a_key_expires(alice: Customer, owner: psycopg.Connection) -> None:
    group = await alice.create_group()
    ends = datetime.now(UTC) + timedelta(minutes=10)
    key = await alice.create_key(expires_at=ends.isoformat())
    assert datetime.fromisoformat(key["expires_at"]) == ends
    assert claims_of(await handle_of(alice, group, key))["exp"] == int(ends.timestamp()), "tokens end with it"
    owner.execute("UPDATE api_keys SET expires_at = now() - interval '1 second'")
    answer = await handle_of(alice, group, key)
    assert "expired" in problem(answer, 401, "credentials_invalid")["detail"]
    past = {"name": "late", "expires_at": (datetime.now(UTC) - timedelta(seconds=1)).isoformat()}
    answer = await alice.post(f"/v1/projects/{alice.project_id}/keys", past)
    assert problem(answer, 422, "validation_failed")["errors"][0]["field"] == "expires_at"
    far = {"name": "late", "expires_at": "9999-12-31T23:59:59-12:00"}  # another year in UTC
    answer = await alice.post(f"/v1/projects/{alice.project_id}/keys", far)
    assert problem(answer, 422, "validation_failed")["errors"][0]["field"] == "expires_at"


async def test_secrets_have_the_form_that_scanners_are_told(alice: Customer) -> None:
    page = (Path(__file__).parents[3] / "docs/reference/api-keys.md").read_text()
    (form,) = re.findall(r"^qk_.*$", page, re.MULTILINE)
    secret = (await alice.create_key())["secret"]
    assert re.fullmatch(form, secret)
    checksum, digits = zlib.crc32(secret[:-6].encode()), ""
    for _ in range(6):
        checksum, digit = divmod(checksum, 62)
        digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"[digit] + digits
    assert secret[-6:] == digits


async def test_a_rotated_key_has_two_secrets_for_a_while(
    alice: Customer, owner: psycopg.Connection, revoker: Revoker, coordinator: FakeCoordinator
) -> None:
    group, key = await alice.create_group(), await alice.create_key()
    answer = await alice.post(f"/v1/keys/{key['id']}/rotate", {"grace_s": 600})
    fresh = answer.json()
    assert answer.status_code == 200, answer.text
    assert fresh["id"] == key["id"]
    old, new = claims_of(await handle_of(alice, group, key)), claims_of(await handle_of(alice, group, fresh))
    assert old["sub"] == new["sub"] == key["id"]
    assert old["cid"] != new["cid"]
    until = datetime.fromisoformat(fresh["former_secret_until"])
    assert old["exp"] == int(until.timestamp()), "tokens of the former secret end with it"
    (listed,) = (await alice.get(f"/v1/projects/{alice.project_id}/keys"))["items"]
    assert listed["prefix"] == fresh["prefix"] != key["prefix"]
    assert listed["former_secret_until"] == fresh["former_secret_until"]
    owner.execute("UPDATE api_key_secrets SET ends_at = now() - interval '1 second' WHERE ends_at IS NOT NULL")
    problem(await handle_of(alice, group, key), 401, "credentials_invalid")
    claims_of(await handle_of(alice, group, fresh))
    await revoker.run()
    assert coordinator.revocations == {}, "nothing of it ended before its time"


async def test_a_leaked_secret_ends_at_once(alice: Customer, revoker: Revoker, coordinator: FakeCoordinator) -> None:
    group, key = await alice.create_group(), await alice.create_key()
    leaked = claims_of(await handle_of(alice, group, key))
    fresh = (await alice.post(f"/v1/keys/{key['id']}/rotate", {"grace_s": 0})).json()
    problem(await handle_of(alice, group, key), 401, "credentials_invalid")
    sound = claims_of(await handle_of(alice, group, fresh))
    assert await revoker.run() == 1
    assert set(coordinator.revocations) == {leaked["cid"]}
    assert coordinator.revocations[leaked["cid"]] >= leaked["exp"]
    assert sound["cid"] not in coordinator.revocations
    assert await revoker.run() == 0


async def test_rotations_are_bounded(alice: Customer) -> None:
    key = await alice.create_key()
    path = f"/v1/keys/{key['id']}/rotate"
    for _ in range(limits.SECRETS_PER_KEY_MAX - 1):
        assert (await alice.post(path, {})).status_code == 200
    problem(await alice.post(path, {}), 403, "quota_exceeded")
    assert (await alice.post(path, {"grace_s": 0})).status_code == 200
    for bad in (-1, limits.ROTATION_GRACE_S_MAX + 1, "1"):
        problem(await alice.post(path, {"grace_s": bad}), 422, "validation_failed")
    problem(await alice.post(f"/v1/keys/{uuid.uuid4()}/rotate", {}), 404, "not_found")


async def test_revocation_reaches_the_coordinator(
    alice: Customer, revoker: Revoker, coordinator: FakeCoordinator, owner: psycopg.Connection
) -> None:
    group, used, unused = await alice.create_group(), await alice.create_key(), await alice.create_key()
    token = claims_of(await handle_of(alice, group, used))
    for key in (used, unused):
        assert (await alice.request("DELETE", f"/v1/keys/{key['id']}")).status_code == 204
    coordinator.takes_revocations = False
    assert await revoker.run() == 0
    assert coordinator.revocations == {}
    coordinator.takes_revocations = True
    assert await revoker.run() == 1
    assert set(coordinator.revocations) == {token["cid"]}, "servers know no token of the other"
    owner.execute("UPDATE revocations SET until = now()")
    await revoker.run()
    assert owner.execute("SELECT count(*) FROM revocations").fetchone() == (0,)


async def test_logging_out_ends_tokens(alice: Customer, revoker: Revoker, coordinator: FakeCoordinator) -> None:
    group = await alice.create_group()
    handle = await alice.request("GET", f"/v1/groups/{group['id']}/handle")
    token = claims_of(handle)
    assert (await alice.request("POST", "/v1/logout")).status_code == 204
    await revoker.run()
    assert set(coordinator.revocations) == {token["cid"]}


async def test_a_token_is_never_issued_behind_a_revocation(
    alice: Customer, revoker: Revoker, coordinator: FakeCoordinator, owner: psycopg.Connection
) -> None:
    """The revocation is committed between the look at the key and the token: the token is not given."""
    group, key = await alice.create_group(), await alice.create_key()
    with owner.transaction():
        owner.execute("UPDATE api_key_secrets SET ends_at = now()")
        # The request waits for the row; after the commit it sees the end.
        asked = asyncio.create_task(handle_of(alice, group, key))
        await asyncio.sleep(0.3)
        assert not asked.done()
    problem(await asked, 401, "credentials_invalid")
