"""Groups: admission, refusal, faults of the coordinator, handle, placement, deletion."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import jwt
import psycopg
import pytest

from quorate_api import limits
from quorate_api.http.services import Services
from support.coordinator import CHARGES, FakeCoordinator
from support.customer import SLA, Customer, bearer, new_key, problem


def stored_groups(owner: psycopg.Connection) -> list[tuple[str, str]]:
    return owner.execute("SELECT name, status FROM groups ORDER BY name").fetchall()


async def test_quote(alice: Customer) -> None:
    quote = (await alice.post("/v1/quotes", SLA)).json()
    assert quote["admissible"] is True
    assert quote["refusal"] is None
    price = quote["price"]
    assert price["hourly_micros"] == sum(line["hourly_micros"] for line in price["lines"]) > 0
    assert price["monthly_micros"] == 730 * price["hourly_micros"]
    assert quote["demand"]["total"]["cpu"] == pytest.approx(0.03)


async def test_a_group_is_admitted_with_its_handle(alice: Customer, coordinator: FakeCoordinator) -> None:
    answer = await alice.post(f"/v1/projects/{alice.project_id}/groups", {"name": "orders", **SLA})
    assert answer.status_code == 201, answer.text
    group = answer.json()
    assert group["status"] == "active"
    assert group["epoch"] == 1
    defaults = {"min_replicas": None, "region": "local", "retention_bytes": 256 << 20, "retention_age_s": None}
    defaults |= {"latency": "standard", "read_rate_per_s": 0}
    assert group["sla"] == SLA | defaults
    assert [endpoint["role"] for endpoint in group["handle"]["endpoints"]] == ["head", "follower", "tail"]
    assert answer.headers["etag"] == '"2"'
    again = await alice.request("GET", answer.headers["location"])
    assert again.json() == {name: value for name, value in group.items() if name != "handle"}
    assert again.headers["etag"] == answer.headers["etag"]
    unchanged = await alice.request("GET", f"/v1/groups/{group['id']}", headers={"If-None-Match": '"2"'})
    assert unchanged.status_code == 304
    assert unchanged.content == b""


async def test_retention_by_age_is_taken_and_checked(alice: Customer, coordinator: FakeCoordinator) -> None:
    groups = f"/v1/projects/{alice.project_id}/groups"
    answer = await alice.post(groups, {"name": "short", **SLA, "retention_age_s": 3_600})
    assert answer.status_code == 201, answer.text
    assert answer.json()["sla"]["retention_age_s"] == 3_600
    for age_s in (0, 59, 1 << 40, "long"):
        refused = await alice.post(groups, {"name": "odd", **SLA, "retention_age_s": age_s})
        assert "retention_age_s" in str(problem(refused, 422, "validation_failed")["errors"])


async def test_a_refusal_leaves_nothing(alice: Customer, owner: psycopg.Connection) -> None:
    body = {"name": "huge", **SLA, "rate_per_s": 50_000_000}
    refused = problem(await alice.post(f"/v1/projects/{alice.project_id}/groups", body), 409, "admission_refused")
    assert refused["refusal"]["scarce_resource"] == "cpu"
    assert refused["refusal"]["largest_sla_that_fits"]["rate_per_s"] == 1_000_000
    assert stored_groups(owner) == []
    fits = {"name": "huge", **refused["refusal"]["largest_sla_that_fits"]}
    assert (await alice.post(f"/v1/projects/{alice.project_id}/groups", fits)).status_code == 201


async def test_a_refusal_between_quote_and_admission_leaves_nothing(
    alice: Customer, coordinator: FakeCoordinator, owner: psycopg.Connection
) -> None:
    coordinator.refuse_put_once = True
    path, body = f"/v1/projects/{alice.project_id}/groups", {"name": "late", **SLA}
    problem(await alice.post(path, body), 409, "admission_refused")
    assert stored_groups(owner) == []
    assert (await alice.post(path, body)).status_code == 201


async def test_creating_waits_for_the_replicas(alice: Customer, coordinator: FakeCoordinator) -> None:
    coordinator.slow_start = 3
    group = await alice.create_group()
    assert group["status"] == "active"
    assert group["handle"] is not None


async def test_names_are_unique_in_a_project_until_deleted(alice: Customer) -> None:
    group = await alice.create_group("a")
    problem(await alice.post(f"/v1/projects/{alice.project_id}/groups", {"name": "a", **SLA}), 409, "name_taken")
    other = await alice.create_project("other")
    assert (await alice.post(f"/v1/projects/{other}/groups", {"name": "a", **SLA})).status_code == 201
    assert (await alice.request("DELETE", f"/v1/groups/{group['id']}")).status_code == 204
    assert (await alice.create_group("a"))["id"] != group["id"]


async def test_when_the_coordinator_is_down_nothing_happens(
    alice: Customer, coordinator: FakeCoordinator, owner: psycopg.Connection
) -> None:
    coordinator.down = True
    answer = await alice.post(f"/v1/projects/{alice.project_id}/groups", {"name": "a", **SLA})
    body = problem(answer, 503, "coordinator_unavailable")
    assert body["retryable"] is True
    assert int(answer.headers["retry-after"]) > 0
    assert stored_groups(owner) == []


async def test_a_lost_answer_is_taken_up_by_the_same_key(
    alice: Customer, coordinator: FakeCoordinator, owner: psycopg.Connection
) -> None:
    """The coordinator admits and its answer is lost: the repetition finds the same group, admitted once."""
    coordinator.lose_put_answers = 1
    key, path, body = new_key(), f"/v1/projects/{alice.project_id}/groups", {"name": "a", **SLA}
    problem(await alice.post(path, body, key), 503, "coordinator_unavailable")
    assert stored_groups(owner) == [("a", "provisioning")]
    coordinator.leaderless = True
    problem(await alice.post(path, body, key), 503, "coordinator_unavailable")
    coordinator.leaderless = False
    assert stored_groups(owner) == [("a", "provisioning")], "it may have been admitted before"
    answer = await alice.post(path, body, key)
    assert answer.status_code == 201, answer.text
    assert [str(group_id) for group_id in coordinator.groups] == [answer.json()["id"]]
    assert stored_groups(owner) == [("a", "active")]


async def test_the_token_is_what_servers_expect(alice: Customer) -> None:
    group = await alice.create_group()
    key = await alice.create_key(scopes=["read"])
    handle = (await alice.api.get(f"/v1/groups/{group['id']}/handle", headers=bearer(key))).json()
    jwks = json.loads((Path(os.environ["TEST_KEYS_DIR"]) / "token-public-keys.json").read_text())
    header = jwt.get_unverified_header(handle["token"])
    assert header == {"alg": "EdDSA", "typ": "JWT", "kid": jwks["keys"][0]["kid"]}
    public = jwt.PyJWK(jwks["keys"][0])
    claims = jwt.decode(handle["token"], public, algorithms=["EdDSA"], audience="quorate-data", issuer="quorate-api")
    assert claims["grants"] == [{"group": group["id"], "ops": ["read"]}]
    assert claims["sub"] == key["id"]
    assert claims["project"] == group["project_id"]
    assert claims["exp"] - claims["iat"] == 3600
    assert datetime.fromisoformat(handle["token_expires_at"]) == datetime.fromtimestamp(claims["exp"], UTC)
    assert handle["charges"] == CHARGES
    assert handle["limits"] == {
        "max_entry_bytes": 1 << 20, "max_batch_bytes": 4 << 20, "max_batch_entries": 65_536, "window_batches": 256,
    }  # fmt: skip


async def test_the_handle_says_whom_to_trust(
    alice: Customer, coordinator: FakeCoordinator, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = await alice.create_group()
    path = f"/v1/groups/{group['id']}/handle"
    tls = {"required": True, "ca_pem": coordinator.CA_PEM}
    assert (await alice.get(path))["tls"] == tls
    # While the coordinator is away, the known authority serves on, even beyond its age limit.
    coordinator.down = True
    monkeypatch.setattr(limits, "AUTHORITY_AGE_S_MAX", 0.0)
    assert (await alice.get(path))["tls"] == tls
    # A process that has never fetched the authority issues no handle.
    services.coordinator._authority = None
    answer = await alice.request("GET", path)
    body = problem(answer, 503, "coordinator_unavailable")
    assert "authority" in body["detail"]
    coordinator.down = False
    services.settings = services.settings.model_copy(update={"plaintext_allowed": True})
    assert (await alice.get(path))["tls"] == tls | {"required": False}


async def test_handle_and_placement_follow_a_failover_at_once(alice: Customer, coordinator: FakeCoordinator) -> None:
    group = await alice.create_group()
    coordinator.fail_over(next(iter(coordinator.groups)))
    handle = await alice.get(f"/v1/groups/{group['id']}/handle")
    assert handle["epoch"] == 2
    assert [(endpoint["server_id"], endpoint["role"]) for endpoint in handle["endpoints"]] == [(2, "head"), (3, "tail")]
    placement = await alice.get(f"/v1/groups/{group['id']}/placement")
    assert placement["epoch"] == 2
    assert placement["status"] == "degraded"
    assert placement["replicas"][0] == {
        "server_id": 2, "server_name": "s2", "address": "127.0.0.1:7002", "role": "head", "alive": True,
        "failure_domain": None,
    }  # fmt: skip


async def test_handles_are_issued_while_the_coordinator_is_down(alice: Customer, coordinator: FakeCoordinator) -> None:
    group = await alice.create_group()
    coordinator.down = True
    assert len((await alice.get(f"/v1/groups/{group['id']}/handle"))["endpoints"]) == 3


async def test_deleting(alice: Customer, coordinator: FakeCoordinator, owner: psycopg.Connection) -> None:
    group = await alice.create_group()
    path = f"/v1/groups/{group['id']}"
    problem(await alice.request("DELETE", path, headers={"If-Match": '"77"'}), 412, "precondition_failed")
    assert (await alice.request("DELETE", path, headers={"If-Match": '"2"'})).status_code == 204
    assert coordinator.groups == {}
    problem(await alice.request("GET", path), 404, "not_found")
    problem(await alice.request("DELETE", path), 404, "not_found")
    assert (await alice.get(f"/v1/projects/{alice.project_id}/groups"))["items"] == []
    assert stored_groups(owner) == [("orders", "deleted")]
    assert (await alice.get(f"{path}/sla"))["minutes_counted"] == 0, "reports outlive the group"


async def test_deleting_while_the_coordinator_is_down_is_remembered(
    alice: Customer, coordinator: FakeCoordinator, owner: psycopg.Connection
) -> None:
    group = await alice.create_group()
    coordinator.down = True
    assert (await alice.request("DELETE", f"/v1/groups/{group['id']}")).status_code == 204
    assert stored_groups(owner) == [("orders", "deleting")]
    assert (await alice.get(f"/v1/groups/{group['id']}"))["status"] == "deleting"
    # A client that asks for its replicas ends at once, and does not try those that it had.
    problem(await alice.request("GET", f"/v1/groups/{group['id']}/handle"), 404, "not_found")


async def test_a_lost_group_says_so_and_is_reset_when_its_owner_asks(
    alice: Customer, bob: Customer, coordinator: FakeCoordinator
) -> None:
    group = await alice.create_group()
    path, group_id = f"/v1/groups/{group['id']}", UUID(group["id"])
    problem(await alice.post(f"{path}/reset", {"epoch": 1}), 409, "group_not_lost")
    coordinator.lose(group_id)
    problem(await alice.request("GET", f"{path}/handle"), 409, "group_lost")
    assert (await alice.get(f"{path}/placement"))["status"] == "lost"
    problem(await bob.post(f"{path}/reset", {"epoch": 2}), 404, "not_found")
    problem(await alice.post(f"{path}/reset", {}), 422, "validation_failed")
    problem(await alice.post(f"{path}/reset", {"epoch": "two"}), 422, "validation_failed")
    coordinator.capacity_gone = True
    refused = problem(await alice.post(f"{path}/reset", {"epoch": 2}), 409, "admission_refused")
    assert refused["refusal"]["scarce_resource"] == "cpu"
    coordinator.capacity_gone = False
    key = new_key()
    answer = await alice.post(f"{path}/reset", {"epoch": 2}, key=key)
    assert answer.status_code == 200, answer.text
    assert (answer.json()["status"], answer.json()["epoch"]) == ("active", 3)
    assert coordinator.resets[-1] == {"epoch": 2}
    again = await alice.post(f"{path}/reset", {"epoch": 2}, key=key)
    assert (again.json(), again.headers["idempotency-replayed"]) == (answer.json(), "true")
    assert len((await alice.get(f"{path}/handle"))["endpoints"]) == 1
    kinds = [event["kind"] for event in (await alice.get(f"{path}/events"))["items"]]
    assert kinds.count("reset_requested") == 1


async def test_quotas(alice: Customer, owner: psycopg.Connection) -> None:
    await alice.create_group("one", rate_per_s=600)
    shown = {quota["code"]: quota for quota in (await alice.get("/v1/quotas"))["items"]}
    assert shown["groups_per_project"]["used"] == 1
    assert shown["total_rate_per_s"]["used"] == 600
    for code, limit in (("groups_per_project", 2), ("total_rate_per_s", 1_000), ("projects", 1)):
        owner.execute("INSERT INTO quota_overrides VALUES (%s, %s, %s)", (alice.organization_id, code, limit))
    path = f"/v1/projects/{alice.project_id}/groups"
    over = problem(await alice.post(path, {"name": "two", **SLA, "rate_per_s": 401}), 403, "quota_exceeded")
    assert "total_rate_per_s" in over["detail"]
    await alice.create_group("two", rate_per_s=400)
    over = problem(await alice.post(path, {"name": "three", **SLA, "rate_per_s": 1}), 403, "quota_exceeded")
    assert "groups_per_project" in over["detail"]
    problem(await alice.post("/v1/projects", {"name": "two"}), 403, "quota_exceeded")


async def test_reads_are_reserved_within_their_quota(
    alice: Customer, coordinator: FakeCoordinator, owner: psycopg.Connection
) -> None:
    plain = await alice.create_group("plain")
    assert "read_rate_per_s" not in coordinator.quoted[-1]["sla"], "an earlier coordinator does not know the field"
    owner.execute("INSERT INTO quota_overrides VALUES (%s, 'total_read_rate_per_s', 900)", (alice.organization_id,))
    group = await alice.create_group("read", read_rate_per_s=600)
    assert group["sla"]["read_rate_per_s"] == 600
    assert coordinator.quoted[-1]["sla"]["read_rate_per_s"] == 600
    shown = {quota["code"]: quota for quota in (await alice.get("/v1/quotas"))["items"]}
    assert shown["total_read_rate_per_s"]["used"] == 600
    path = f"/v1/projects/{alice.project_id}/groups"
    over = problem(await alice.post(path, {"name": "more", **SLA, "read_rate_per_s": 301}), 403, "quota_exceeded")
    assert "total_read_rate_per_s" in over["detail"]
    over = problem(
        await alice.request("PATCH", f"/v1/groups/{plain['id']}", json={"read_rate_per_s": 301}), 403, "quota_exceeded"
    )
    assert "total_read_rate_per_s" in over["detail"]
    resized = await alice.request("PATCH", f"/v1/groups/{plain['id']}", json={"read_rate_per_s": 300})
    assert resized.json()["sla"] == plain["sla"] | {"read_rate_per_s": 300}
    fewer = await alice.request("PATCH", f"/v1/groups/{group['id']}", json={"read_rate_per_s": 0})
    assert fewer.json()["sla"]["read_rate_per_s"] == 0, "0 says something"
    problem(await alice.post(path, {"name": "wrong", **SLA, "read_rate_per_s": -1}), 422, "validation_failed")


async def test_costs_say_how_much_of_a_reservation_an_operation_takes(
    alice: Customer, bob: Customer, coordinator: FakeCoordinator
) -> None:
    group = await alice.create_group()
    path = f"/v1/groups/{group['id']}/costs"
    found = await alice.get(path)
    assert found["request_size_bytes"] == 64
    by = {(one["operation"], one["size_bytes"], one["entries"]): one for one in found["operations"]}
    assert {operation for operation, _, _ in by} == {"append", "read", "catch_up"}
    declared = by["append", 64, 16]
    # A fixed microsecond, and a tenth of a nanosecond for each of 64 bytes.
    assert (declared["counts_as"], declared["cpu_ns"]) == (1.0, 1_006)
    assert by["append", 64, 1]["cpu_ns"] == 1_006 + 15 * 90, "a batch has a cost of its own"
    assert by["append", 64, 1]["counts_as"] == pytest.approx(2.341, abs=0.01)
    assert by["append", 1_024, 16]["counts_as"] == pytest.approx((128 + 2 * 1_024) / (128 + 2 * 64), abs=0.01)
    assert by["catch_up", 64, 16]["counts_as"] == 1.0, "reads are reserved as if they came from the disk"
    assert by["read", 64, 16]["cpu_ns"] < by["catch_up", 64, 16]["cpu_ns"]
    assert by["catch_up", 64, 1]["storage_operations"] == 1.0, "no page takes less than one"
    memory = await alice.create_group("memory", durability="in_memory")
    operations = (await alice.get(f"/v1/groups/{memory['id']}/costs"))["operations"]
    assert {one["operation"] for one in operations} == {"append", "read"}
    assert min(one["counts_as"] for one in operations if one["size_bytes"] == 64) == 1.0
    problem(await bob.request("GET", path), 404, "not_found")
    coordinator.down = True
    problem(await alice.request("GET", path), 503, "coordinator_unavailable")


async def test_a_managing_key_gets_no_token(alice: Customer) -> None:
    key = await alice.create_key(scopes=["manage"])
    answer = await alice.api.post(
        f"/v1/projects/{alice.project_id}/groups", json={"name": "a", **SLA}, headers=bearer(key)
    )
    assert answer.status_code == 201, answer.text
    assert answer.json()["handle"] is None
    answer = await alice.api.get(f"/v1/groups/{answer.json()['id']}/handle", headers=bearer(key))
    problem(answer, 403, "permission_denied")


async def test_lists_are_paged(alice: Customer, services: Services) -> None:
    names = [f"g{number}" for number in range(5)]
    for name in names:
        await alice.create_group(name)
    path, found, cursor = f"/v1/projects/{alice.project_id}/groups", [], ""
    while cursor is not None:
        page = await alice.get(path, params={"limit": 2} | ({"cursor": cursor} if cursor else {}))
        assert 0 < len(page["items"]) <= 2
        found += [group["name"] for group in page["items"]]
        cursor = page["next_cursor"]
    assert found == names[::-1]
