"""A loop with `ready()` before each append loses nothing to its deadlines, however far it runs ahead of the rate."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

import quorate
from conftest import Owner
from quorate_local.options import REPOSITORY

RATE_PER_S = 300
# Twice as many as pass within the deadline.
TIMEOUT_S = 3
ENTRIES = 2 * RATE_PER_S * TIMEOUT_S

LOOP_JS = """
import { connect, AppendRefused } from "./dist/index.js";
import { readFileSync } from "node:fs";
const { handle, sizes, entries, timeoutMs } = JSON.parse(readFileSync(0, "utf8"));
const client = await connect(handle, { timeoutMs });
const refused = {};
const appended = [];
for (let i = 0; i < entries; i++) {
  await client.ready();
  const count = (problem) => (refused[problem.code] = (refused[problem.code] ?? 0) + 1);
  appended.push(client.append(Buffer.alloc(sizes[i % sizes.length])).catch(count));
}
await Promise.all(appended);
await client.close();
console.log(JSON.stringify(refused));
"""


def loop_in_python(handle: dict[str, Any], sizes: list[int]) -> dict[str, int]:
    async def work() -> dict[str, int]:
        refused: dict[str, int] = {}
        async with await quorate.connect(handle, timeout=TIMEOUT_S) as client:
            futures = []
            for number in range(ENTRIES):
                await client.ready()
                futures.append(client.append(bytes(sizes[number % len(sizes)])))
            for outcome in await asyncio.gather(*futures, return_exceptions=True):
                if isinstance(outcome, BaseException):
                    refused[str(outcome)] = refused.get(str(outcome), 0) + 1
        return refused

    return asyncio.run(work())


def loop_in_node(handle: dict[str, Any], sizes: list[int]) -> dict[str, int]:
    asked = {"handle": handle, "sizes": sizes, "entries": ENTRIES, "timeoutMs": TIMEOUT_S * 1_000}
    command = ["node", "--input-type=module", "-e", LOOP_JS]
    done = subprocess.run(
        command, cwd=REPOSITORY / "sdk/js", input=json.dumps(asked), capture_output=True, text=True, timeout=90
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("exceed the group's declared request size of 64") == 1
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("loop", [loop_in_python, loop_in_node])
def test_a_loop_with_ready_loses_nothing(
    alice: Owner, loop: Callable[[dict[str, Any], list[int]], dict[str, int]], caplog: pytest.LogCaptureFixture
) -> None:
    sla = {"durability": "in_memory", "replication_degree": 3, "request_size_bytes": 64, "rate_per_s": RATE_PER_S}
    group = alice.customer.create_group(f"paced-{loop.__name__[8:]}", sla)
    handle = alice.customer.get(f"/v1/groups/{group['id']}/handle")
    # Less than the declared size, and more: a head charges those more than a client reckons.
    assert loop(handle, [16, 60, 100, 4_096]) == {}
    if loop is loop_in_python:
        assert caplog.text.count("exceed the group's declared request size of 64") == 1
