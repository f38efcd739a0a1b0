"""A spend cap suspends a customer's group: appends, reads and tails end with its own error, until the cap is gone."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime
from typing import Any

import psycopg
import pytest

from quorate import AppendRefused, Client, ReadRefused, connect_group
from quorate_harness.customer import Customer, Refused
from quorate_local import Stack

CAP_WAIT_S = 60.0
ROOM_MICROS = 20
ENTRIES = 1_000  # 150 micros


def test_a_cap_suspends_a_group_and_its_end_lets_it_go_on(stack: Stack) -> None:
    with Customer(stack.api_url, "e2e-capped") as customer:
        sla = {"durability": "persistent", "replication_degree": 3, "request_size_bytes": 64, "rate_per_s": 1_000}
        group = customer.create_group("capped", sla)
        with pytest.raises(Refused, match="validation_failed"):
            customer.put("/v1/budgets", {"monthly_micros": 1, "action": "suspend"})
        budget = customer.put("/v1/budgets", {"monthly_micros": 10**12, "action": "suspend"})
        _lower(stack, budget["id"], _certain_micros(customer, group) + ROOM_MICROS)
        asyncio.run(_until_suspended_and_back(customer, group["id"], budget["id"]))


def _certain_micros(customer: Customer, group: dict[str, Any]) -> int:
    """The cost of this month with the reservation until its end."""
    spend = customer.get("/v1/spend")
    left_s = datetime.fromisoformat(spend["period_end"]).timestamp() - time.time()
    return int(spend["spent_micros"] + group["price"]["hourly_micros"] * left_s / 3_600) + 1


def _lower(stack: Stack, budget_id: str, monthly_micros: int) -> None:
    """Below what a whole month costs, which the API refuses. So the cap is reached by a few appends on any day."""
    with psycopg.connect(stack.addresses["postgres"]) as connection:
        connection.execute("UPDATE budgets SET monthly_micros = %s WHERE id = %s", [monthly_micros, budget_id])


async def _until_suspended_and_back(customer: Customer, group_id: str, budget_id: str) -> None:
    async with await connect_group(customer.api_url, customer.api_key, group_id) as log:
        tail = asyncio.ensure_future(_follow(log))
        await asyncio.gather(*(log.append(b"spent") for _ in range(ENTRIES)))
        refusal = await _refused(log)
        assert (refusal.name, refusal.fault, refusal.retryable) == ("group_suspended", "client", False)
        with pytest.raises(ReadRefused, match="group_suspended"):
            await asyncio.wait_for(tail, 10)
        await _shown(customer, group_id, "suspended")
        assert customer.get(f"/v1/budgets/{budget_id}")["acted"]["action"] == "suspend"
        customer.delete(f"/v1/budgets/{budget_id}")
        assert await _appended(log) >= ENTRIES


async def _shown(customer: Customer, group_id: str, access: str) -> None:
    """The head refuses a moment before the API has the coordinator's answer."""
    deadline = time.monotonic() + CAP_WAIT_S
    while customer.get(f"/v1/groups/{group_id}")["access"] != access:
        assert time.monotonic() < deadline, f"the API does not show {access}"
        await asyncio.sleep(0.2)


async def _follow(log: Client) -> None:
    async for _ in log.tail(0):
        pass


async def _refused(log: Client) -> AppendRefused:
    deadline = time.monotonic() + CAP_WAIT_S
    while time.monotonic() < deadline:
        try:
            await log.append(b"more")
        except AppendRefused as refusal:
            return refusal
        await asyncio.sleep(0.2)
    raise AssertionError(f"no cap acted within {CAP_WAIT_S} s")


async def _appended(log: Client) -> int:
    deadline = time.monotonic() + CAP_WAIT_S
    while True:
        try:
            return await log.append(b"again")
        except AppendRefused:
            assert time.monotonic() < deadline, f"it is suspended after {CAP_WAIT_S} s still"
        await asyncio.sleep(0.2)
