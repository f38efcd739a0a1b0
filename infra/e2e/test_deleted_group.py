"""A group is deleted under its clients: appends and tails end at once, with the reason."""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from typing import Any

import quorate
from conftest import Owner
from quorate.control import Control
from quorate_local.options import REPOSITORY

# The first attempt after the deletion finds the head gone, and the next handle says why.
ANSWER_S_MAX = 3

DELETED_JS = """
import { connectGroup } from "./dist/index.js";
import { readFileSync } from "node:fs";
const { url, key, group, remove } = JSON.parse(readFileSync(0, "utf8"));
const client = await connectGroup(url, key, group);
await client.append(Buffer.from("before"));
const tail = client.tail(1);
const tailed = tail.next().then(() => "an entry", (problem) => problem.message);
const removed = await fetch(`${url}/v1/groups/${group}`, { method: "DELETE", headers: remove });
if (!removed.ok) throw new Error(await removed.text());
const began = performance.now();
const appended = await client.append(Buffer.from("after")).then(() => "acked", (problem) => problem.message);
console.log(JSON.stringify({ appended, tailed: await tailed, seconds: (performance.now() - began) / 1000 }));
await client.close();
"""


def group_of(owner: Owner, name: str) -> tuple[str, str]:
    sla = {"durability": "in_memory", "replication_degree": 3, "request_size_bytes": 64, "rate_per_s": 100}
    group = owner.customer.create_group(name, sla)
    key = owner.customer.post(
        f"/v1/projects/{group['project_id']}/keys", {"name": name, "scopes": ["append", "read", "manage"]}
    )
    return group["id"], key["secret"]


def told(found: dict[str, Any]) -> None:
    for what in ("appended", "tailed"):
        assert "group_not_here" in found[what], found
        assert "deleted" in found[what], found
    assert found["seconds"] < ANSWER_S_MAX, found


def test_a_python_client_is_told(alice: Owner) -> None:
    group_id, key = group_of(alice, "deleted-python")

    async def work() -> dict[str, Any]:
        async with await quorate.connect_group(alice.customer.api_url, key, group_id) as client:
            await client.append(b"before")
            tail = client.tail(1)
            tailing = asyncio.create_task(anext(aiter(tail)))
            await asyncio.sleep(0.1)
            async with Control(alice.customer.api_url, key) as control:
                await control.delete_group(group_id)
            began = time.monotonic()
            appended, tailed = await asyncio.gather(client.append(b"after"), tailing, return_exceptions=True)
            return {"appended": str(appended), "tailed": str(tailed), "seconds": time.monotonic() - began}

    told(asyncio.run(asyncio.wait_for(work(), 60)))


def test_a_node_client_is_told(alice: Owner) -> None:
    group_id, key = group_of(alice, "deleted-node")
    asked = {
        "url": alice.customer.api_url,
        "key": key,
        "group": group_id,
        "remove": {"Authorization": f"Bearer {key}"},
    }
    done = subprocess.run(
        ["node", "--input-type=module", "-e", DELETED_JS],
        cwd=REPOSITORY / "sdk/js",
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    told(json.loads(done.stdout))
