"""Trimming: trimmed entries are gone on every replica, and stay gone when all servers restart."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quorate import ReadRefused, sync
from quorate.codes import Code
from quorate_harness.customer import Customer
from quorate_local import Stack, StackOptions

BATCHES = 10
PATIENCE_S = 30.0


@pytest.fixture
def own_stack(own_state: Path) -> Iterator[Stack]:
    with Stack(StackOptions.from_environment(state=own_state, servers=3)) as stack:
        yield stack


def trimmed_everywhere(handle: dict[str, Any], offset: int) -> bool:
    """Whether each replica by itself reports that its entries begin at `offset`."""
    for endpoint in handle["endpoints"]:
        with sync.connect({**handle, "endpoints": [endpoint]}, read_only=True, timeout=PATIENCE_S) as replica:
            if replica.status().trim_offset != offset:
                return False
    return True


def eventually_trimmed_everywhere(customer: Customer, group_id: str, offset: int) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while not trimmed_everywhere(customer.get(f"/v1/groups/{group_id}/handle"), offset):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


@pytest.mark.parametrize("durability", ["in_memory", "persistent"])
def test_an_acknowledged_trim_is_everywhere(alice: Any, durability: str) -> None:
    handle = alice.handle(durability)
    with sync.connect(handle) as client:
        begin = client.status().next_offset
        ends = [client.append_many([b"x"] * 3).base_offset + 3 for _ in range(BATCHES)]
        assert client.trim(ends[3] + 1) == ends[3], "the fifth batch holds the offset: it stays"
        with pytest.raises(ReadRefused) as refused:
            client.read(begin)
        assert refused.value.code == Code.TRIMMED
        assert [entry.offset for entry in client.read(ends[3]).entries] == list(range(ends[3], ends[-1]))
        with pytest.raises(ReadRefused) as refused:
            client.trim(ends[-1] + 1)
        assert refused.value.code == Code.TRIM_BEYOND_COMMIT
        assert client.trim(0) == ends[3]
    assert eventually_trimmed_everywhere(alice.customer, handle["group_id"], ends[3])


def test_a_trim_outlasts_a_restart_of_all_servers(own_stack: Stack) -> None:
    sla = {"durability": "persistent", "replication_degree": 3, "request_size_bytes": 64, "rate_per_s": 1_000}
    with Customer(own_stack.api_url, "trims") as customer:
        group = customer.create_group("trimmed", sla)
        with sync.connect(customer.get(f"/v1/groups/{group['id']}/handle")) as client:
            for _ in range(BATCHES):
                client.append(b"x")
            assert client.trim(BATCHES - 3) == BATCHES - 3
        for name in ("s1", "s2", "s3"):
            own_stack.kill_server(name)
        for name in ("s1", "s2", "s3"):
            own_stack.restart_server(name)
        assert eventually_trimmed_everywhere(customer, group["id"], BATCHES - 3)
        with sync.connect(customer.get(f"/v1/groups/{group['id']}/handle"), timeout=PATIENCE_S) as client:
            assert [entry.offset for entry in client.read(BATCHES - 3).entries] == [7, 8, 9]
            assert client.append(b"y") == BATCHES
