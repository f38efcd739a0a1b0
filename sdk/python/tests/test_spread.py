"""Reads of a client that spreads them, against a fake group of three replicas."""

import asyncio
import json
from dataclasses import replace

import pytest
import run as conformance

import quorate


def run_with(tmp_path, scenario, work):
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps(scenario))
    with conformance.fake_group(path) as answer:
        return asyncio.run(asyncio.wait_for(work(answer["handle"]), 20))


async def settled(client):
    """Until all replicas that live are connected."""
    for _ in range(200):
        await client.read(0)
        if len(client._spread._ready()) == len(client.handle.endpoints):
            return
        await asyncio.sleep(0.01)


def test_reads_go_to_all_replicas_and_see_what_was_appended(tmp_path):
    async def work(handle):
        async with await quorate.connect(handle, spread_reads=True) as client:
            await client.append_many([b"%d" % i for i in range(50)])
            await settled(client)
            asked = set()
            choose = client._spread._windows.choose
            client._spread._windows.choose = lambda now, ready: asked.add(one := choose(now, ready)) or one
            results = await asyncio.gather(*(client.read(i, max_entries=1) for i in range(50)))
            assert [result.entries[0].data for result in results] == [b"%d" % i for i in range(50)]
            assert len(asked) == 3
            for i in range(50, 80):
                offset = await client.append(b"%d" % i)
                assert (await client.read(offset)).entries[0].data == b"%d" % i, "it reads its own appends"

    run_with(tmp_path, {}, work)


def test_reads_that_wait_and_tails_go_on_as_before(tmp_path):
    async def work(handle):
        async with await quorate.connect(handle, spread_reads=True) as client:
            waiting = asyncio.create_task(client.read(0, wait=5.0))
            await asyncio.sleep(0.05)
            await client.append(b"new")
            assert [entry.data for entry in (await waiting).entries] == [b"new"]
            async with client.tail(0) as tail:
                assert [entry.data for entry in await tail.next_entries()] == [b"new"]
            assert (await client.read(1)).entries == []

    run_with(tmp_path, {}, work)


def test_a_dead_replica_costs_no_read(tmp_path):
    async def work(handle):
        async with await quorate.connect(handle, spread_reads=True, timeout=5.0) as client:
            await client.append_many([b"x"] * 20)
            for i in range(200):
                assert (await client.read(i % 20, max_entries=1)).entries

    run_with(tmp_path, {"faults": [{"on": "start", "dead": [3]}]}, work)


def test_reads_of_a_replica_that_a_new_handle_lacks_are_asked_elsewhere(tmp_path):
    async def work(handle):
        async with await quorate.connect(handle, spread_reads=True) as client:
            await client.append_many([b"x"] * 20)
            await settled(client)
            reads = [asyncio.create_task(client.read(i, max_entries=1)) for i in range(9)]
            await asyncio.sleep(0.05)
            handles = client._handles
            handles.handle = replace(handles.handle, endpoints=handles.handle.endpoints[:1])
            handles.version += 1
            assert (await client.read(0)).entries
            assert all(result.entries for result in await asyncio.gather(*reads))
            assert client._spread._ready() == [handles.handle.endpoints[0].address]
            late = [asyncio.create_task(client.read(i)) for i in range(3)]
            await asyncio.sleep(0.05)
        for read in late:
            with pytest.raises(quorate.ReadRefused) as refused:
                await read
            assert refused.value.code == quorate.Code.CLIENT_CLOSED

    run_with(tmp_path, {"faults": [{"on": "start", "read_delay_ms": 200}]}, work)
