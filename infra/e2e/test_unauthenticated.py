"""Idle unauthenticated connections keep nobody out; a client that is refused a group keeps its connection."""

from __future__ import annotations

import re
import socket
import time
from pathlib import Path

from conftest import Owner
from quorate import wire
from quorate.codes import Code
from quorate_harness.customer import Customer
from quorate_local import Stack, StackOptions
from quorate_local.options import REPOSITORY
from wire_client import WireClient, head_address

ADDRESS = "127.0.0.2"  # all of 127.0.0.0/8 is loopback
SLA = {"durability": "in_memory", "replication_degree": 1, "request_size_bytes": 64, "rate_per_s": 1_000}


def per_address_max() -> int:
    limits = (REPOSITORY / "services" / "crates" / "types" / "src" / "limits.rs").read_text()
    [found] = re.findall(r"HANDSHAKES_PER_ADDRESS_MAX: usize = (\d+);", limits)
    return int(found)


def is_closed(connection: socket.socket) -> bool:
    connection.settimeout(0.2)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionResetError:
        return True


def test_idle_unauthenticated_connections_have_few_places(alice: Owner) -> None:
    handle = alice.customer.get(f"/v1/groups/{alice.groups['persistent']['id']}/handle")
    host, port = head_address(handle).rsplit(":", 1)
    connections: list[socket.socket] = []
    try:
        for _ in range(per_address_max() + 50):
            connections.append(socket.create_connection((host, int(port)), 5, source_address=(ADDRESS, 0)))
        assert all(is_closed(late) for late in connections[-50:]), "beyond the bound they are closed at once"
        assert not is_closed(connections[0])
        with WireClient(handle) as client:
            assert isinstance(client.attach(handle["group_id"], handle["token"]), wire.Attached)
        deadline = time.monotonic() + 15
        while not is_closed(connections[0]):
            assert time.monotonic() < deadline, "an idle connection is closed in time"
        again = socket.create_connection((host, int(port)), 5, source_address=(ADDRESS, 0))
        connections.append(again)
        assert not is_closed(again), "its place is free again"
    finally:
        for connection in connections:
            connection.close()


def test_a_refused_attach_leaves_its_channel_free_on_every_shard(own_state: Path) -> None:
    stack = Stack(StackOptions.from_environment(state=own_state, servers=2, shards_per_server=2))
    with stack, Customer(stack.api_url, "shards") as customer:
        by_head: dict[str, dict[str, str]] = {}
        for number in range(20):
            group = customer.create_group(f"group-{number}", SLA)
            handle = customer.get(f"/v1/groups/{group['id']}/handle")
            by_head.setdefault(head_address(handle), handle)
            if len(by_head) == 2:
                break
        (there, _), (_, elsewhere) = by_head.items()
        # Connections go to the shards in turn: one of two is on a shard without the group.
        for _ in range(2):
            with WireClient(elsewhere, address=there) as client:
                for _ in range(3):
                    refused = client.attach(elsewhere["group_id"], elsewhere["token"])
                    assert isinstance(refused, wire.Refused)
                    assert refused.code == Code.GROUP_NOT_HERE, "not: the channel is in use"
                here = by_head[there]
                assert isinstance(client.attach(here["group_id"], here["token"]), wire.Attached)
