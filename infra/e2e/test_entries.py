"""Looking into a log through the API: from an offset, a time or the end, of one chain and of partitions."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from quorate import Placed, connect_partitioned_group, sync
from quorate_harness.customer import Customer, Refused
from quorate_local import Stack

SLA = {"durability": "persistent", "replication_degree": 3, "request_size_bytes": 64, "rate_per_s": 1_000}


@pytest.fixture
def customer(stack: Stack) -> Iterator[Customer]:
    with Customer(stack.api_url, "e2e-entries") as customer:
        yield customer


def texts(page: dict[str, Any]) -> list[str]:
    return [base64.b64decode(each["data"]).decode() for each in page["items"]]


async def appended(customer: Customer, group_id: str) -> list[Placed]:
    async with await connect_partitioned_group(customer.api_url, customer.api_key, group_id) as log:
        return [await log.append(f"key {key}".encode(), key=str(key)) for key in range(8)]


def test_a_log_is_looked_into(customer: Customer) -> None:
    group = customer.create_group("looked-into", SLA)
    path = f"/v1/groups/{group['id']}/entries"
    empty = customer.get(path)
    assert (empty["items"], empty["end_offset"]) == ([], 0)
    with sync.connect_group(customer.api_url, customer.api_key, group["id"]) as log:
        for number in range(20):
            log.append(f"entry {number}".encode())
        between = datetime.now(UTC)
        log.append(b"x" * 100_000)
        log.append("straße".encode())

        newest = customer.get(f"{path}?limit=3")
        assert [each["offset"] for each in newest["items"]] == [19, 20, 21]
        assert (newest["first_offset"], newest["end_offset"], newest["next_offset"]) == (0, 22, 22)
        long = newest["items"][1]
        assert (long["size_bytes"], long["is_cut"], len(base64.b64decode(long["data"]))) == (100_000, True, 16_384)
        assert customer.get_bytes(f"{path}/20") == b"x" * 100_000
        assert texts(customer.get(f"{path}?offset=5&limit=2")) == ["entry 5", "entry 6"]
        later = customer.get(path, {"at": between.isoformat()})
        assert [each["offset"] for each in later["items"]] == [20, 21]
        assert datetime.fromisoformat(later["items"][0]["at"]) >= between
        assert texts(customer.get(path, {"at": "2026-01-01T00:00:00Z", "limit": "1"})) == ["entry 0"]
        with pytest.raises(Refused, match="not_found"):
            customer.get_bytes(f"{path}/22")

        begun = time.monotonic()
        assert customer.get(f"{path}?offset=22&wait_s=1")["items"] == []
        assert 0.9 < time.monotonic() - begun < 5, "it waits for the next entry, for as long as it is asked to"
    customer.delete(f"/v1/groups/{group['id']}")


def test_a_partition_is_looked_into(customer: Customer) -> None:
    group = customer.create_group("looked-into-parts", {**SLA, "partitions": 2})
    placed = asyncio.run(appended(customer, group["id"]))
    for partition in range(2):
        page = customer.get(f"/v1/groups/{group['id']}/entries?partition={partition}")
        expected = [f"key {key}" for key, each in enumerate(placed) if each.partition == partition]
        assert texts(page) == expected
    customer.delete(f"/v1/groups/{group['id']}")
