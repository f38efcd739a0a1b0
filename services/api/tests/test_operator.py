"""The fleet's operators: their calls, refused to everybody else, and customers' calls, refused to them."""

import uuid

import httpx2
import pytest

from quorate_api import app as application
from quorate_api.openapi import document
from quorate_api.security import staff_tokens
from quorate_api.security.keys import Keys
from quorate_api.security.staff_tokens import StaffTokens
from support.coordinator import TOKENS_PER_APPEND, FakeCoordinator
from support.customer import SLA, Customer, bearer, new_key, problem

OPERATIONS = [
    (method.upper(), path, "operator" in operation["tags"], operation["security"])
    for path, methods in document(application.bare())["paths"].items()
    for method, operation in methods.items()
]
PROBER = "/v1/prober/"
NAMED = (
    "project_id", "group_id", "key_id", "invoice_id", "budget_id", "session_id", "user_id", "invitation_id",
    "passkey_id", "identity_id", "incident_id", "webhook_id", "delivery_id", "organization_id",
)  # fmt: skip
IDS = {name: str(uuid.uuid4()) for name in NAMED} | {
    "server_id": "1",
    "token_id": "0" * 16,
    "consumer": "billing",
    "offset": "0",
    "quota": "projects",
}
# They are in PostgreSQL alone.
PLACES = ("incidents", "invoices", "organizations", "me", "sessions", "audit", "admissions", "quota-requests", "prices")
APART = tuple(f"/v1/operator/{place}" for place in PLACES)


async def test_customers_do_not_reach_the_fleet(alice: Customer, coordinator: FakeCoordinator) -> None:
    key, administrator = await alice.create_key(), await alice.create_organization_key()
    ours = [(method, path) for method, path, operators, _ in OPERATIONS if operators]
    assert len(ours) >= 7
    for method, path in ours:
        address = path.format(**IDS)
        problem(await alice.request(method, address, json={}), 401, "not_authenticated")
        for each in (key, administrator, {"secret": staff_tokens.generate("operator")}, {"secret": ""}):
            answer = await alice.api.request(method, address, json={}, headers=bearer(each))
            problem(answer, 401, "credentials_invalid")
    assert coordinator.join_tokens == []
    assert not any(server["draining"] for server in coordinator.servers.values())


async def test_operators_do_not_reach_customers(operator: httpx2.AsyncClient, alice: Customer) -> None:
    theirs = [(method, path) for method, path, operators, security in OPERATIONS if not operators and security]
    assert len(theirs) >= 20
    for method, path in theirs:
        problem(await operator.request(method, path.format(**IDS), json={}), 401, "credentials_invalid")


async def test_probers_reach_their_own_calls_alone(prober: httpx2.AsyncClient, alice: Customer) -> None:
    others = [(method, path) for method, path, _, security in OPERATIONS if security and not path.startswith(PROBER)]
    for method, path in others:
        problem(await prober.request(method, path.format(**IDS), json={}), 401, "credentials_invalid")
    own = [(method, path) for method, path, _, _ in OPERATIONS if path.startswith(PROBER)]
    assert len(own) == 2
    for method, path in own:
        problem(await alice.request(method, path, json={}), 401, "not_authenticated")


async def test_the_replicas_on_a_server(operator: httpx2.AsyncClient, alice: Customer, bob: Customer) -> None:
    first, second = await alice.create_group("first"), await bob.create_group("second")
    for group in (first, second):
        await (alice if group is first else bob).get(f"/v1/groups/{group['id']}/placement")
    found = (await operator.get("/v1/operator/servers/1/replicas")).json()["items"]
    assert [(each["name"], each["organization_name"]) for each in found] == [("second", "bob"), ("first", "alice")]
    assert found[0]["group_id"] == second["id"]
    assert found[0]["role"] in ("head", "middle", "tail")
    assert not found[0]["is_learner"]
    page = (await operator.get("/v1/operator/servers/1/replicas", params={"limit": 1})).json()
    rest = {"limit": 1, "cursor": page["next_cursor"]}
    assert (await operator.get("/v1/operator/servers/1/replicas", params=rest)).json()["items"] == found[1:]
    assert (await operator.get("/v1/operator/servers/9/replicas")).json()["items"] == []


async def test_price_lists(operator: httpx2.AsyncClient) -> None:
    listed = (await operator.get("/v1/operator/prices")).json()
    (held,) = [each for each in listed["items"] if each["is_held"]]
    assert {each["resource"] for each in held["resources"]} == {"cpu", "network", "storage_io"}
    assert [each["kind"] for each in held["usage"]] == ["appends", "reads", "egress", "storage"]


async def test_servers_and_capacity(operator: httpx2.AsyncClient) -> None:
    listed = (await operator.get("/v1/operator/servers")).json()["items"]
    assert [server["name"] for server in listed] == ["s1", "s2", "s3"]
    named = (await operator.get("/v1/operator/servers", params={"name": "s2"})).json()["items"]
    assert [server["server_id"] for server in named] == [2]
    assert (await operator.get("/v1/operator/servers/2")).json() == named[0]
    problem(await operator.get("/v1/operator/servers/9"), 404, "not_found")
    problem(await operator.get("/v1/operator/servers/0"), 422, "validation_failed")
    problem(await operator.get("/v1/operator/servers/s1"), 422, "validation_failed")
    capacity = (await operator.get("/v1/operator/capacity")).json()
    assert capacity["servers_alive"] == 3
    assert capacity["free"]["cpu"] == 2.0


async def test_the_last_round_of_sharing(operator: httpx2.AsyncClient, coordinator: FakeCoordinator) -> None:
    shown = (await operator.get("/v1/operator/sharing")).json()
    assert (shown["policy"], shown["groups_wanting"], shown["groups_satisfied"]) == ("drf", 4, 1)
    assert shown["ended_at"] == "2026-09-21T14:13:20.500000Z"
    coordinator.shares = False  # of an earlier release
    problem(await operator.get("/v1/operator/sharing"), 404, "not_found")


async def test_balance_with_its_reasons(
    operator: httpx2.AsyncClient, alice: Customer, coordinator: FakeCoordinator
) -> None:
    group = (await alice.create_group())["id"]
    idle = (await operator.get("/v1/operator/balance")).json()
    assert (idle["rounds"], idle["partitions"], idle["moves"]) == (3, 4, [])
    lacking = {"cpu": 0.25, "network_bytes_per_s": 0.0, "storage_io_per_s": 0.0}
    coordinator.balanced |= {
        "pressures": [{"server_id": 2, "cause": "demand", "partition": group, "lacking": lacking}],
        "rate_changes": [{"at_unix_ms": 1_790_000_000_500, "group_id": group, "is_swapped": True, "rates": [70, 30]}],
    }
    moving = (await operator.post(f"/v1/operator/groups/{group}/moves", json={"from_server": 1})).json()
    assert moving["relocation"]["cause"] == "operator"
    assert moving["relocation"]["moves"] == [{"from_server": 1, "to_server": 4}]
    shown = (await operator.get("/v1/operator/balance")).json()
    assert shown["moves"] == [moving]
    assert shown["pressures"] == [{"server_id": 2, "cause": "demand", "partition": group, "lacking": lacking}]
    at = "2026-09-21T14:13:20.500000Z"
    assert shown["rate_changes"] == [{"at": at, "group_id": group, "is_swapped": True, "rates": [70, 30]}]
    coordinator.shares = False  # of an earlier release
    problem(await operator.get("/v1/operator/balance"), 404, "not_found")


async def test_a_move_that_cannot_be_changes_nothing(
    operator: httpx2.AsyncClient, alice: Customer, coordinator: FakeCoordinator
) -> None:
    group = (await alice.create_group())["id"]
    moves = f"/v1/operator/groups/{group}/moves"
    refused = await operator.post(moves, json={"from_server": 1, "to_server": 77})
    assert problem(refused, 409, "move_refused")["detail"] == "There is no such server."
    for wrong in ({}, {"from_server": 0}, {"from_server": "1"}, {"from_server": 1, "to": 2}):
        problem(await operator.post(moves, json=wrong), 422, "validation_failed")
    unknown = f"/v1/operator/groups/{uuid.uuid4()}/moves"
    problem(await operator.post(unknown, json={"from_server": 1}), 404, "not_found")
    assert (await operator.get("/v1/operator/balance")).json()["moves"] == []


async def test_guarantees_of_all_projects(
    operator: httpx2.AsyncClient, alice: Customer, coordinator: FakeCoordinator
) -> None:
    assert (await operator.get("/v1/operator/guarantees")).json() == {"items": []}
    group = await alice.create_group()
    address = f"/v1/projects/{group['project_id']}/guarantee"
    terms = {"shared_tokens_per_s": 5_000, "policy": {"name": "first_fit"}}
    assert (await alice.request("PUT", address, json=terms)).status_code == 200
    [shown] = (await operator.get("/v1/operator/guarantees")).json()["items"]
    assert (shown["project_id"], shown["policy"]["name"], shown["groups"]) == (group["project_id"], "first_fit", 1)
    prices = [shown[f"{what}_tokens_per_s"] for what in ("shared", "wanted", "granted")]
    assert prices == [5_000, 70 * TOKENS_PER_APPEND, 50 * TOKENS_PER_APPEND]


async def test_a_server_that_the_cost_profile_is_not_of_is_flagged(
    operator: httpx2.AsyncClient, coordinator: FakeCoordinator
) -> None:
    how = "it was measured on 2 × A processor, and this is 8 × Another"
    coordinator.servers[2] |= {"machine": "8 × Another", "foreign": how, "takes_replicas": False}
    servers = (await operator.get("/v1/operator/servers")).json()["items"]
    shown = [(server["machine"], server["foreign"], server["takes_replicas"]) for server in servers]
    own = ("2 × A processor", None, True)
    assert shown == [own, ("8 × Another", how, False), own]


async def test_a_drain_and_calling_it_off(operator: httpx2.AsyncClient, coordinator: FakeCoordinator) -> None:
    answer = await operator.post("/v1/operator/servers/2/drain")
    assert answer.status_code == 200, answer.text
    assert answer.json()["drain"]["message"] == "2 replicas are left."
    assert coordinator.servers[2]["draining"]
    answer = await operator.delete("/v1/operator/servers/2/drain")
    assert answer.json()["drain"] is None
    assert not coordinator.servers[2]["draining"]
    problem(await operator.post("/v1/operator/servers/9/drain"), 404, "not_found")
    problem(await operator.delete("/v1/operator/servers/9/drain"), 404, "not_found")


async def test_giving_a_server_up(operator: httpx2.AsyncClient, coordinator: FakeCoordinator) -> None:
    problem(await operator.delete("/v1/operator/servers/1"), 409, "server_alive")
    coordinator.servers[1]["alive"] = False
    assert (await operator.delete("/v1/operator/servers/1")).status_code == 204
    problem(await operator.delete("/v1/operator/servers/1"), 404, "not_found")


async def test_join_tokens(operator: httpx2.AsyncClient, coordinator: FakeCoordinator) -> None:
    key = {"Idempotency-Key": new_key()}
    answer = await operator.post("/v1/operator/join-tokens", json={"name": "s9", "ttl_s": 60}, headers=key)
    assert answer.status_code == 201, answer.text
    assert answer.json()["token"] == "qjt_1.fingerprint"
    again = await operator.post("/v1/operator/join-tokens", json={"name": "s9", "ttl_s": 60}, headers=key)
    assert again.json() == answer.json()
    assert coordinator.join_tokens == [{"name": "s9", "ttl_s": 60, "auxiliary": False}]
    for wrong in ({"ttl_s": 0}, {"ttl_s": 10**9}, {"name": "a b"}, {"name": ""}, {"who": "me"}, {"ttl_s": "60"}):
        problem(await operator.post("/v1/operator/join-tokens", json=wrong), 422, "validation_failed")
    (listed,) = (await operator.get("/v1/operator/join-tokens")).json()["items"]
    assert listed["id"] == answer.json()["id"]
    assert (listed["state"], listed["name"], "token" in listed) == ("outstanding", "s9", False)
    assert (await operator.delete(f"/v1/operator/join-tokens/{listed['id']}")).status_code == 204
    (listed,) = (await operator.get("/v1/operator/join-tokens")).json()["items"]
    assert listed["state"] == "revoked"
    problem(await operator.delete("/v1/operator/join-tokens/00000000000000ff"), 404, "not_found")
    problem(await operator.delete("/v1/operator/join-tokens/short"), 422, "validation_failed")
    coordinator.join_tokens_max = 1
    problem(await operator.post("/v1/operator/join-tokens", json={}), 409, "too_many_join_tokens")


async def test_a_coordinator_that_is_away(operator: httpx2.AsyncClient, coordinator: FakeCoordinator) -> None:
    coordinator.down = True
    for method, path, operators, _ in OPERATIONS:
        apart = path.endswith(("/corrections", "/replicas")) or path.startswith(APART)
        if operators and not apart:
            body = {"from_server": 1} if path.endswith("/moves") else {}
            answer = await operator.request(method, path.format(**IDS), json=body)
            problem(answer, 503, "coordinator_unavailable")


async def test_infrastructure_as_code_has_a_key_of_its_own(alice: Customer, bob: Customer) -> None:
    """An organization's key creates projects, groups and keys. It does not create its own kind."""
    administrator = bearer(await alice.create_organization_key())
    api = alice.api
    project = (await api.post("/v1/projects", json={"name": "made"}, headers=administrator)).json()
    group = (
        await api.post(f"/v1/projects/{project['id']}/groups", json={"name": "g", **SLA}, headers=administrator)
    ).json()
    assert group["handle"] is not None, "it appends and reads, so that it makes keys that do"
    key = (await api.post(f"/v1/projects/{project['id']}/keys", json={"name": "app"}, headers=administrator)).json()
    assert (await api.get(f"/v1/groups/{group['id']}/handle", headers=bearer(key))).status_code == 200
    problem(
        await api.post("/v1/organization/keys", json={"name": "x"}, headers=administrator), 403, "permission_denied"
    )
    (listed,) = (await api.get("/v1/organization/keys", headers=administrator)).json()["items"]
    problem(await api.delete(f"/v1/keys/{listed['id']}", headers=administrator), 403, "permission_denied")
    problem(await api.post("/v1/organization/keys", json={"name": "x"}, headers=bearer(key)), 403, "permission_denied")
    assert (await bob.get("/v1/organization/keys"))["items"] == []
    problem(await bob.request("DELETE", f"/v1/keys/{listed['id']}"), 404, "not_found")

    problem(await api.delete(f"/v1/projects/{project['id']}", headers=administrator), 409, "project_not_empty")
    assert (await api.delete(f"/v1/groups/{group['id']}", headers=administrator)).status_code == 204
    assert (await api.delete(f"/v1/projects/{project['id']}", headers=administrator)).status_code == 204
    problem(await api.get(f"/v1/projects/{project['id']}", headers=administrator), 404, "not_found")
    problem(await api.get("/v1/me", headers=bearer(key)), 401, "credentials_invalid")
    assert (await api.post("/v1/projects", json={"name": "made"}, headers=administrator)).status_code == 201

    assert (await alice.request("DELETE", f"/v1/keys/{listed['id']}")).status_code == 204
    problem(await api.get("/v1/projects", headers=administrator), 401, "credentials_invalid")


async def test_a_quote_that_replaces_a_group(alice: Customer, bob: Customer, coordinator: FakeCoordinator) -> None:
    group = await alice.create_group()
    asked = {**SLA, "replaces_group_id": group["id"]}
    assert (await alice.post("/v1/quotes", asked)).status_code == 200
    assert coordinator.quoted[-1]["replaces_group_id"] == group["id"]
    problem(await bob.post("/v1/quotes", asked), 404, "not_found")
    problem(await alice.post("/v1/quotes", {**SLA, "replaces_group_id": "orders"}), 422, "validation_failed")


def test_tokens_are_read_strictly() -> None:
    keys = Keys(b"x" * 32)
    first, second = staff_tokens.generate("operator"), staff_tokens.generate("operator")
    both = StaffTokens.read(keys, "operator", f"{first}\n\n{second}\n")
    assert both.who(keys, first) != both.who(keys, second)
    assert both.who(keys, first[:-1]) is None
    assert StaffTokens.read(keys, "operator", None).who(keys, "") is None
    assert StaffTokens.read(keys, "prober", staff_tokens.generate("prober")).who(keys, first) is None
    with pytest.raises(ValueError, match="line 2"):
        StaffTokens.read(keys, "operator", f"{first}\nqo_short\n")
    with pytest.raises(ValueError, match="`qp_`"):
        StaffTokens.read(keys, "prober", first)
