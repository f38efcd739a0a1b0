"""Reads that an SLA reserves: admitted, refused with what fits, served by all replicas, and counted for the SLA."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

import quorate
from quorate_harness.customer import Refused
from quorate_harness.fleet import Fleet, fleet
from quorate_local.display import Display

READS_PER_S, ENTRIES, PAGE_ENTRIES = 4_000, 2_000, 50
COUNTED_WITHIN_S = 15


def test_reserved_reads_are_owed_on_the_replicas_that_serve_them(tmp_path: Path) -> None:
    with fleet(tmp_path, Display(quiet=True), 3) as servers:
        group = servers.create_group("orders", "persistent", 500, read_rate_per_s=READS_PER_S)
        servers.wait_whole(group)
        assert servers.customer.get(f"/v1/groups/{group}")["sla"]["read_rate_per_s"] == READS_PER_S
        plain = servers.customer.post("/v1/quotes", quoted())["price"]["hourly_micros"]
        priced = servers.customer.post("/v1/quotes", quoted(read_rate_per_s=READS_PER_S))["price"]["hourly_micros"]
        assert priced > plain, "reads cost what is reserved for them"
        too_much = servers.customer.post("/v1/quotes", quoted(read_rate_per_s=100_000_000))
        assert not too_much["admissible"]
        fits = too_much["refusal"]["largest_sla_that_fits"]
        assert fits["rate_per_s"] == 500, "appends stay as they are"
        assert 0 < fits["read_rate_per_s"] < 100_000_000
        with pytest.raises(Refused, match="409 admission_refused"):
            servers.customer.create_group("greedy", quoted(read_rate_per_s=100_000_000))
        asyncio.run(read_all(servers.signed_handle(group)))
        owed, late, roles = counted(servers, group)
        assert owed >= 3 * ENTRIES, "each entry was read three times, within the reservation"
        assert late <= owed // 10, f"{late} of {owed} left late"
        assert len(roles) > 1, f"reads are counted where they were served: {roles}"


def quoted(**more: int) -> dict[str, object]:
    return {"durability": "persistent", "replication_degree": 3, "request_size_bytes": 64, "rate_per_s": 500} | more


async def read_all(handle: dict[str, object]) -> None:
    async with await quorate.connect(handle, spread_reads=True) as log:
        for _ in range(ENTRIES // PAGE_ENTRIES):
            await log.append_many([bytes(64)] * PAGE_ENTRIES)
        for _ in range(3):
            # A page at a time, and slower than the reservation of one replica.
            for offset in range(0, ENTRIES, PAGE_ENTRIES):
                result = await log.read(offset, max_entries=PAGE_ENTRIES)
                assert len(result.entries) == PAGE_ENTRIES
                await asyncio.sleep(PAGE_ENTRIES / READS_PER_S)


def counted(servers: Fleet, group: str) -> tuple[int, int, set[str]]:
    """Owed and late entries of the group, and the roles of the replicas that owed them."""
    until = time.monotonic() + COUNTED_WITHIN_S
    query = "SELECT role, owed_read_entries, late_read_entries FROM usage_windows WHERE group_id = %s"
    while True:
        with psycopg.connect(servers.stack.addresses["postgres"], autocommit=True) as connection:
            rows = connection.execute(query, (UUID(group),)).fetchall()
        owed, late = sum(row[1] for row in rows), sum(row[2] for row in rows)
        if owed >= 3 * ENTRIES or time.monotonic() > until:
            return owed, late, {row[0] for row in rows if row[1]}
        time.sleep(0.5)
