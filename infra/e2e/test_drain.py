"""A server is drained while customers append: no entry is lost, every group keeps its degree, the server may stop."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import httpx2

from quorate.group import connect_group
from quorate_harness.customer import Customer
from quorate_local import Stack, StackOptions
from quorate_local.cli import main

SERVERS = 5
DEGREE = 3
DRAIN_TIMEOUT_S = 90
BATCH = 20
PAUSE_S = 0.01


class Load:
    """One client of one group, appending until stopped. Entries are numbered; `offsets` has where each went."""

    def __init__(self, customer: Customer, group_id: str) -> None:
        self._customer, self._group_id = customer, group_id
        self.offsets: list[int] = []
        self.failure: Exception | None = None
        self.longest_gap_s = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(60)
        assert not self._thread.is_alive(), "the client hangs"
        assert self.failure is None, f"an append failed: {self.failure!r}"

    def _run(self) -> None:
        try:
            asyncio.run(self._append())
        except Exception as error:  # raised again by `stop`, in the test's thread
            self.failure = error

    async def _append(self) -> None:
        async with await connect_group(
            self._customer.api_url, self._customer.api_key, self._group_id, timeout=30.0
        ) as client:
            while not self._stopping.is_set():
                began = time.monotonic()
                first = len(self.offsets)
                entries = [b"%08d" % number for number in range(first, first + BATCH)]
                self.offsets += await asyncio.gather(*[client.append(entry) for entry in entries])
                self.longest_gap_s = max(self.longest_gap_s, time.monotonic() - began)
                await asyncio.sleep(PAUSE_S)

    def read_back(self, first: int = 0) -> list[bytes]:
        """`first`: the offset of its first entry."""

        async def read() -> list[bytes]:
            async with await connect_group(
                self._customer.api_url, self._customer.api_key, self._group_id, timeout=30.0
            ) as client:
                found: list[bytes] = []
                while len(found) < len(self.offsets):
                    entries = (await client.read(first + len(found))).entries
                    assert entries, f"the log ends at {len(found)}"
                    found += [bytes(entry.data) for entry in entries]
                return found

        return asyncio.run(read())


class Watcher:
    """Polls all groups at the coordinator, and notes every chain that is short."""

    def __init__(self, stack: Stack) -> None:
        self.short: list[dict[str, Any]] = []
        self.looks = 0
        self._stack = stack
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(30)

    def _run(self) -> None:
        with coordinator(self._stack) as http:
            while not self._stopping.wait(0.02):
                for group in http.get("/v1/groups").raise_for_status().json():
                    self.looks += 1
                    if len(group["replicas"]) < DEGREE or group["status"] != "active":
                        self.short.append(group)


def coordinator(stack: Stack) -> httpx2.Client:
    return httpx2.Client(
        base_url=f"http://{stack.addresses['coordinator_http']}",
        headers={"Authorization": f"Bearer {stack.admin_token()}"},
        timeout=10.0,
        trust_env=False,
    )


def kinds(stack: Stack) -> list[str]:
    with coordinator(stack) as http:
        return [event["kind"] for event in http.get("/v1/events?after=0").raise_for_status().json()["events"]]


def test_a_server_is_drained_under_load_and_may_stop(own_state: Path) -> None:
    stack = Stack(StackOptions.from_environment(state=own_state, servers=SERVERS))
    with stack, Customer(stack.api_url, "drains") as customer:
        groups = [
            customer.create_group(
                f"{durability.replace('_', '-')}-{number}",
                {
                    "durability": durability,
                    "replication_degree": DEGREE,
                    "request_size_bytes": 64,
                    "rate_per_s": 20_000,
                },
            )
            for durability in ("in_memory", "persistent")
            for number in (1, 2)
        ]
        # The head of the first group: clients must follow it to another server.
        name = customer.placement(groups[0]["id"])["replicas"][0]["server_name"]
        loads = [Load(customer, group["id"]) for group in groups]
        watcher = Watcher(stack)
        time.sleep(1.0)  # a log worth learning
        assert main(["drain", name, "--state", str(own_state), "--timeout", str(DRAIN_TIMEOUT_S)]) == 0
        time.sleep(0.5)
        for group in groups:
            assert name not in [replica["server_name"] for replica in customer.placement(group["id"])["replicas"]]
        watcher.stop()
        assert watcher.looks > 0
        assert watcher.short == [], "a group was below its degree, or not active"

        running = stack.processes()[name]
        assert running.is_alive(), "a drained server runs until it is stopped"
        before = kinds(stack)
        os.kill(running.identity.pid, signal.SIGTERM)
        deadline = time.monotonic() + 15
        while "server_stopped" not in kinds(stack) and time.monotonic() < deadline:
            time.sleep(0.1)
        after = kinds(stack)[len(before) :]
        assert after == ["server_stopped"], "its stop is no failure, and no group notices"

        for load in loads:
            load.stop()
            assert load.offsets == list(range(len(load.offsets))), "each entry has its place, once"
            assert load.read_back() == [b"%08d" % number for number in range(len(load.offsets))]
            assert load.longest_gap_s < 5.0

        # Started again it stays drained until that is cancelled; then it takes replicas.
        stack.restart_server(name)
        assert main(["drain", name, "--state", str(own_state)]) == 0
        assert main(["drain", name, "--cancel", "--state", str(own_state)]) == 0
        assert main(["drain", "s99", "--state", str(own_state)]) == 1


def test_a_lost_group_is_reported_everywhere_and_reset(own_state: Path) -> None:
    stack = Stack(StackOptions.from_environment(state=own_state, servers=1))
    with stack, Customer(stack.api_url, "loses") as customer:
        sla = {"durability": "in_memory", "replication_degree": 1, "request_size_bytes": 64, "rate_per_s": 10_000}
        group = customer.create_group("presence", sla)
        load = Load(customer, group["id"])
        time.sleep(1.0)
        load.stop()
        # Entries of a lost log that no server ever reported are not billed; these were reported.
        customer.settled_invoice(group["id"], len(load.offsets), timeout_s=20)
        stack.kill_server("s1")
        stack.restart_server("s1")
        path = f"/v1/groups/{group['id']}"
        deadline = time.monotonic() + 20
        while (lost := customer.get(path))["status"] != "lost" and time.monotonic() < deadline:
            time.sleep(0.1)
        assert lost["status"] == "lost"
        begun = customer.post(f"{path}/reset", {"epoch": lost["epoch"]})
        assert begun["status"] == "active"
        assert customer.post(f"{path}/reset", {"epoch": lost["epoch"]})["epoch"] == begun["epoch"], "once"

        async def append() -> tuple[int, bytes]:
            async with await connect_group(customer.api_url, customer.api_key, group["id"], timeout=15.0) as client:
                offset = await client.append(b"after the reset")
                return offset, bytes((await client.read(offset)).entries[0].data)

        offset, read = asyncio.run(append())
        assert offset > max(load.offsets), "no offset is used twice"
        assert read == b"after the reset"
        billed = len(load.offsets) + 1
        bill = customer.settled_invoice(group["id"], billed, timeout_s=20)
        [line] = [line for line in bill["lines"] if line["kind"] == "appends"]
        assert line["quantity"] == billed, "both logs' entries, and not the gap between their offsets"
