"""Appends steadily until SIGTERM, then prints the spans in which no append was acked, as JSON, in ms since 1970.

Arguments: appends per second, the shortest span that counts in ms. Address, key and group come from the environment.
"""

import asyncio
import json
import os
import signal
import sys
import time

import quorate

TIMEOUT_S = 5.0
WAITING_MAX = 1_000  # appends: twenty seconds of the slowest


async def main(rate_per_s: int, shortest_ms: float) -> None:
    url, key, group = (os.environ[name] for name in ("QUORATE_API_URL", "QUORATE_API_KEY", "QUORATE_GROUP_ID"))
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    spans: list[tuple[float, float]] = []
    acked_ms = time.time() * 1_000
    waiting: set[asyncio.Task[None]] = set()

    async def append(log: quorate.Client) -> None:
        nonlocal acked_ms
        try:
            await log.append(b"watched")
        except quorate.QuorateError:
            return
        now_ms = time.time() * 1_000
        if now_ms - acked_ms > shortest_ms:
            spans.append((acked_ms, now_ms))
        acked_ms = now_ms

    async with await quorate.connect_group(url, key, group, timeout=TIMEOUT_S) as log:
        await log.append(b"first")
        acked_ms = time.time() * 1_000
        print("watching", flush=True)
        while not ended.is_set():
            if len(waiting) < WAITING_MAX:
                task = asyncio.create_task(append(log))
                waiting.add(task)
                task.add_done_callback(waiting.discard)
            await asyncio.sleep(1 / rate_per_s)
        await asyncio.gather(*waiting, return_exceptions=True)
    print(json.dumps(spans), flush=True)


asyncio.run(main(int(sys.argv[1]), float(sys.argv[2])))
