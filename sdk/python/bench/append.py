#!/usr/bin/env python3
"""Throughput and latency of one process's appends.

    python3 bench/append.py HANDLE.json [--entries 500000] [--bytes 64] [--outstanding 8192]

Closed loop: a new append starts when the oldest outstanding one has ended. Latency is measured on every 64th append,
from the call to its result. HANDLE.json is the API's answer to GET /v1/groups/{id}/handle, or the output of
sdk/conformance/fake_server.py.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import deque
from pathlib import Path

import quorate

SAMPLE_EVERY = 64


async def run(client: quorate.Client, entries: int, size: int, outstanding: int) -> dict[str, float]:
    entry = b"x" * size
    waiting: deque[asyncio.Future[int]] = deque()
    latencies_s: list[float] = []
    append = client.append
    began = time.perf_counter()
    for number in range(entries):
        future = append(entry)
        waiting.append(future)
        if number % SAMPLE_EVERY == 0:
            started = time.perf_counter()
            future.add_done_callback(lambda _, started=started: latencies_s.append(time.perf_counter() - started))
        if len(waiting) >= outstanding:
            await waiting.popleft()
            while waiting and waiting[0].done():
                waiting.popleft().result()
    while waiting:
        await waiting.popleft()
    took_s = time.perf_counter() - began
    latencies_s.sort()
    return {
        "appends_per_s": round(entries / took_s),
        "p50_us": round(latencies_s[len(latencies_s) // 2] * 1e6),
        "p99_us": round(latencies_s[len(latencies_s) * 99 // 100] * 1e6),
    }


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("handle", type=Path)
    parser.add_argument("--entries", type=int, default=500_000)
    parser.add_argument("--bytes", type=int, default=64)
    parser.add_argument("--outstanding", type=int, default=8_192)
    arguments = parser.parse_args()
    document = json.loads(arguments.handle.read_text())
    async with await quorate.connect(document.get("handle", document), pace=False) as client:
        await run(client, 1_000, arguments.bytes, arguments.outstanding)  # warms up
        result = await run(client, arguments.entries, arguments.bytes, arguments.outstanding)
    print(json.dumps({"language": "python", **result, "outstanding": arguments.outstanding, "bytes": arguments.bytes}))


if __name__ == "__main__":
    asyncio.run(main())
