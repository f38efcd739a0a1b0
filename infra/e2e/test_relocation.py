"""A group is resized beyond the room of its servers while a customer appends. The coordinator is killed meanwhile."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import httpx2

from quorate import connect_group
from quorate_harness.customer import Customer
from quorate_local import Stack, StackOptions
from quorate_local.options import ServerResources
from test_drain import Load, coordinator, kinds

SERVERS, FULL = 6, 3  # servers, and those that are full
# A persistent append costs two operations at each replica; four fifths of a server may be promised.
OPERATIONS_PER_S = 20_000
SIZE_BYTES = 4_096
SMALL_PER_S, LARGE_PER_S, RESIZED_PER_S = 500, 6_500, 6_000
RESIZED_WITHIN_S = 60.0
FILLED = 2_500


def sla(rate_per_s: int) -> dict[str, Any]:
    return {
        "durability": "persistent",
        "replication_degree": 3,
        "request_size_bytes": SIZE_BYTES,
        "rate_per_s": rate_per_s,
        "retention_bytes": 16 << 20,
    }


def drain(stack: Stack, server_ids: list[int], method: str) -> None:
    with coordinator(stack) as http:
        for server_id in server_ids:
            http.request(method, f"/v1/servers/{server_id}/drain").raise_for_status()


async def fill(customer: Customer, group_id: str) -> None:
    """Appends so much that copying it takes longer than a coordinator's restart."""
    async with await connect_group(customer.api_url, customer.api_key, group_id, timeout=60.0) as client:
        await asyncio.gather(*[client.append(bytes(SIZE_BYTES)) for _ in range(FILLED)])


def operator(stack: Stack, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    token = (stack.options.state / "secrets" / "operator-token").read_text().strip()
    headers = {"Authorization": f"Bearer {token}"}
    method = "GET" if body is None else "POST"
    answer = httpx2.request(method, f"{stack.api_url}{path}", headers=headers, json=body, timeout=10.0)
    return dict(answer.raise_for_status().json())


def servers_of(customer: Customer, group_id: str) -> set[int]:
    return {replica["server_id"] for replica in customer.placement(group_id)["replicas"]}


def test_a_group_is_resized_by_moves_under_load(own_state: Path) -> None:
    resources = ServerResources(cpu_cores=4.0, network_bytes_per_s=10**9, storage_io_per_s=OPERATIONS_PER_S)
    options = StackOptions.from_environment(state=own_state, servers=SERVERS, server_resources=resources)
    with Stack(options) as stack, Customer(stack.api_url, "moves") as customer:
        with coordinator(stack) as http:
            ids = sorted(server["server_id"] for server in http.get("/v1/servers").raise_for_status().json())
        full, empty = ids[:FULL], ids[FULL:]
        drain(stack, empty, "POST")
        group = customer.create_group("grows", sla(SMALL_PER_S))
        customer.create_group("neighbour", sla(LARGE_PER_S))
        drain(stack, empty, "DELETE")
        path = f"/v1/groups/{group['id']}"
        assert servers_of(customer, group["id"]) == set(full)
        asyncio.run(fill(customer, group["id"]))
        load = Load(customer, group["id"])
        time.sleep(1.0)

        quote = customer.quote({**sla(RESIZED_PER_S), "replaces_group_id": group["id"]})
        assert quote["admissible"]
        assert quote["moves"] == FULL, "no server of the group has room for any position"
        asked = customer.patch(path, {"rate_per_s": RESIZED_PER_S})
        assert asked["sla"]["rate_per_s"] == SMALL_PER_S, "the former SLA holds meanwhile"
        assert asked["resizing"]["sla"]["rate_per_s"] == RESIZED_PER_S
        [moving] = operator(stack, "/v1/operator/balance")["moves"]
        assert (moving["group_id"], moving["relocation"]["cause"]) == (group["id"], "resize")
        stack.crash("coordinator")
        stack.restart("coordinator")
        deadline = time.monotonic() + RESIZED_WITHIN_S
        while (resized := customer.get(path))["resizing"] is not None and time.monotonic() < deadline:
            time.sleep(0.2)
        assert resized["sla"]["rate_per_s"] == RESIZED_PER_S
        assert resized["price"] == asked["resizing"]["price"]
        assert servers_of(customer, group["id"]) == set(empty)
        assert customer.placement(group["id"])["relocation"] is None
        assert operator(stack, "/v1/operator/balance")["moves"] == []

        load.stop()
        count = len(load.offsets)
        assert load.offsets == list(range(FILLED, FILLED + count)), "each entry has its place, once"
        assert load.read_back(FILLED) == [b"%08d" % number for number in range(count)]
        assert kinds(stack).count("group_resized") == 1
        an_operator_moves_a_replica_and_sees_guarantees(stack, customer)


def an_operator_moves_a_replica_and_sees_guarantees(stack: Stack, customer: Customer) -> None:
    group_id = customer.create_group("small", {**sla(10), "durability": "in_memory"})["id"]
    before = servers_of(customer, group_id)
    leaves = min(before)
    asked = operator(stack, f"/v1/operator/groups/{group_id}/moves", {"from_server": leaves})
    assert asked["relocation"]["cause"] == "operator"
    comes = asked["relocation"]["moves"][0]["to_server"]
    deadline = time.monotonic() + RESIZED_WITHIN_S
    while operator(stack, "/v1/operator/balance")["moves"] and time.monotonic() < deadline:
        time.sleep(0.2)
    assert servers_of(customer, group_id) == before - {leaves} | {comes}
    path = f"/v1/projects/{customer.project_id}/guarantee"
    customer.put(path, {"shared_tokens_per_s": 5_000, "policy": {"name": "first_fit"}})
    [guarantee] = operator(stack, "/v1/operator/guarantees")["items"]
    assert (guarantee["project_id"], guarantee["groups"]) == (customer.project_id, 3)
    assert (guarantee["shared_tokens_per_s"], guarantee["policy"]["name"]) == (5_000, "first_fit")
