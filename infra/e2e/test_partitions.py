"""A group with partitions on real servers: appended to by key, read as one, and grown under load."""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import quorate
from quorate.control import Control
from quorate_harness.customer import Customer
from quorate_local import Stack, StackOptions
from quorate_local.options import REPOSITORY

SLA = {
    "durability": "persistent",
    "replication_degree": 3,
    "request_size_bytes": 256,
    "rate_per_s": 8_000,
    "retention_bytes": 1 << 28,
}
KEYS = 50
LOAD_S = 6.0


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    folder: Path = REPOSITORY / "build" / "e2e" / "partitions"
    stack = Stack(StackOptions.from_environment(state=folder, servers=5))
    stack.wipe()
    with stack:
        yield stack


@pytest.fixture(scope="module")
def customer(stack: Stack) -> Iterator[Customer]:
    with Customer(stack.api_url, "e2e-partitions") as customer:
        yield customer


class Producer:
    """Appends numbered entries of some keys, each key's in order, without waiting for each."""

    def __init__(self, client: quorate.PartitionedClient) -> None:
        self.client = client
        self.acked: dict[str, list[int]] = {f"key-{number}": [] for number in range(KEYS)}
        self.unknown: set[tuple[str, int]] = set()
        self.placed: dict[tuple[str, int], quorate.Placed] = {}
        self.is_over = False

    async def run(self) -> None:
        number = 0
        waiting: list[asyncio.Task[None]] = []
        while not self.is_over:
            for key in self.acked:
                future = self.client.append(f"{key}:{number}".encode(), key=key, timeout=20)
                waiting.append(asyncio.ensure_future(self.note(key, number, future)))
            number += 1
            await self.client.ready()
            await asyncio.sleep(0.02)
        await asyncio.gather(*waiting)

    async def note(self, key: str, number: int, future: asyncio.Future[quorate.Placed]) -> None:
        try:
            self.placed[key, number] = await future
            self.acked[key].append(number)
        except quorate.AppendUnknown:
            self.unknown.add((key, number))

    @property
    def count(self) -> int:
        return sum(map(len, self.acked.values()))


async def read_all(
    client: quorate.PartitionedClient, least: int, cursor: Any = None
) -> tuple[list[Any], quorate.Cursor]:
    """At least so many entries of a merged tail, and all that come within a moment."""
    found = []
    async with client.tail(cursor) as tail:
        while True:
            wait_s = 20.0 if len(found) < least else 0.5
            try:
                found.append(await asyncio.wait_for(anext(tail), wait_s))
            except TimeoutError:
                assert len(found) >= least, f"{len(found)} of {least} entries"
                return found, tail.cursor


def by_key(entries: list[Any]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for entry in entries:
        key, number = entry.data.decode().rsplit(":", 1)
        found.setdefault(key, []).append(int(number))
    return found


def check(producer: Producer, entries: list[Any]) -> None:
    """Nothing acknowledged is lost, nothing is there twice, and every key has its order."""
    for key, numbers in by_key(entries).items():
        assert numbers == sorted(set(numbers)), f"{key}: {numbers}"
        assert set(producer.acked[key]) <= set(numbers), f"{key} lost {set(producer.acked[key]) - set(numbers)}"
        beyond = set(numbers) - set(producer.acked[key])
        assert beyond <= {number for of, number in producer.unknown if of == key}, f"{key} was never sent {beyond}"


async def connected(stack: Stack, customer: Customer, group: dict[str, Any]) -> quorate.PartitionedClient:
    return await quorate.connect_partitioned_group(stack.api_url, customer.api_key, group["id"])


def test_a_group_grows_under_load_while_servers_are_killed(stack: Stack, customer: Customer) -> None:
    group = customer.create_group("orders", {**SLA, "partitions": 4})
    assert group["partitions"] == 4

    async def work() -> None:
        async with await connected(stack, customer, group) as client, await connected(stack, customer, group) as reader:
            assert client.partitions == 4
            producer = Producer(client)
            task = asyncio.create_task(producer.run())
            live = asyncio.create_task(follow(reader))
            await asyncio.sleep(1.5)
            grow = asyncio.create_task(
                asyncio.to_thread(customer.patch, f"/v1/groups/{group['id']}", {"partitions": 9})
            )
            await asyncio.sleep(0.05)
            head = stack.servers_by_address()[client.partition(2).handle.endpoints[0].address]
            await asyncio.to_thread(stack.kill_server, head)
            grown = await grow
            await asyncio.sleep(1.5)
            await asyncio.to_thread(stack.restart_server, head)
            await asyncio.sleep(LOAD_S - 3)
            producer.is_over = True
            await task
            assert client.partitions == 9, grown
            assert producer.count > 100 * KEYS / 10
            until = time.monotonic() + 5
            while len(live_entries) < producer.count and time.monotonic() < until:
                await asyncio.sleep(0.05)
            live.cancel()
            entries, cursor = await read_all(client, producer.count)
            check(producer, entries)
            check(producer, live_entries)
            used = {entry.partition for entry in entries}
            assert used == set(range(9)), used
            more = await client.append(b"key-1:999999", key="key-1")
            rest, _ = await read_all(client, 1, cursor)
            assert [(entry.partition, entry.offset) for entry in rest] == [(more.partition, more.offset)]

    live_entries: list[Any] = []

    async def follow(reader: quorate.PartitionedClient) -> None:
        async with reader.tail() as tail:
            async for entry in tail:
                live_entries.append(entry)

    asyncio.run(work())
    assert stack.dead() == []


def test_a_plain_group_gets_partitions_and_old_clients_are_told(stack: Stack, customer: Customer) -> None:
    group = customer.create_group("events", SLA)

    async def work() -> None:
        handle = customer.get(f"/v1/groups/{group['id']}/handle")
        async with await quorate.connect(handle) as plain, await connected(stack, customer, group) as client:
            first = [await client.append(f"a:{number}".encode(), key="a") for number in range(5)]
            assert {placed.partition for placed in first} == {0}
            assert await plain.append(b"b:0") == 5
            customer.patch(f"/v1/groups/{group['id']}", {"partitions": 2})
            with pytest.raises(quorate.AppendRefused, match="layout_changed") as refused:
                await plain.append(b"b:1")
            assert refused.value.code == quorate.Code.LAYOUT_CHANGED
            later = [await client.append(f"{key}:9".encode(), key=key) for key in ("a", "b", "c", "d")]
            assert {placed.partition for placed in later} == {0, 1}
            entries, cursor = await read_all(client, 10)
            assert by_key(entries)["a"] == [0, 1, 2, 3, 4, 9]
            with pytest.raises(quorate.HandleError, match="connect_partitioned"):
                await quorate.connect(customer.get(f"/v1/groups/{group['id']}/handle"))
            async with Control(stack.api_url, customer.api_key) as control:
                assert (await control.checkpoint(group["id"], "billing")).offsets == (0,)
                await control.save_checkpoint(group["id"], "billing", cursor)
                assert await control.checkpoint(group["id"], "billing") == cursor
            assert quorate.Cursor.parse(str(cursor)) == cursor
            rest, _ = await read_all(client, 0, str(cursor))
            assert rest == []
            three = quorate.Cursor(cursor.group_id, (*cursor.offsets, 0))
            with pytest.raises(quorate.CursorError, match="3 partitions"):
                client.tail(three)

    asyncio.run(work())


def test_the_javascript_sdk_follows_a_growth(stack: Stack, customer: Customer) -> None:
    group = customer.create_group("clicks", {**SLA, "partitions": 2})
    script = Path(__file__).with_name("partitions.mjs")
    command = ["node", str(script), stack.api_url, customer.api_key, group["id"], "5"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    told = json.loads(ran.stdout)
    assert told["used"] == [0, 1, 2, 3, 4], told
    assert told["acked"] + told["unknown"] == 150 * 40
