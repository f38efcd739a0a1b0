"""A client that appends all that it can. Prints "ready" once it is connected.

Arguments: the size of an entry in bytes, seconds, and the habit. `bursts`: 20,000 entries at once, again and again, as
the SDK batches and paces them. `singles`: 64 callers that each await their append, at no pace. Address, key and group
come from the environment.
"""

import asyncio
import contextlib
import json
import os
import sys
import time

import quorate

ENTRIES = 20_000
CALLERS = 64


async def bursts(log: quorate.Client, size_bytes: int, end_s: float) -> None:
    while time.monotonic() < end_s:
        futures = [log.append(bytes(size_bytes)) for _ in range(ENTRIES)]
        await asyncio.gather(*futures, return_exceptions=True)


async def singles(log: quorate.Client, size_bytes: int, end_s: float) -> None:
    async def caller() -> None:
        while time.monotonic() < end_s:
            with contextlib.suppress(quorate.QuorateError):
                await log.append(bytes(size_bytes))

    await asyncio.gather(*(caller() for _ in range(CALLERS)))


async def main(size_bytes: int, seconds: float, habit: str) -> None:
    url, key, group = (os.environ[name] for name in ("QUORATE_API_URL", "QUORATE_API_KEY", "QUORATE_GROUP_ID"))
    async with await quorate.connect_group(url, key, group, pace=habit == "bursts") as log:
        print(json.dumps("ready"), flush=True)
        end_s = time.monotonic() + seconds
        await (bursts if habit == "bursts" else singles)(log, size_bytes, end_s)


asyncio.run(main(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]))
