"""Appends steadily for some seconds, then counts the log. Prints how the appends ended, and its entries, as JSON.

Arguments: appends per second, seconds. Address, key and group come from the environment.
"""

import asyncio
import json
import os
import sys
import time

import quorate

TIMEOUT_S = 30.0  # longer than any fault, so that few appends end as unknown
TURN_S = 0.02


async def main(rate_per_s: int, seconds: float) -> None:
    url, key, group = (os.environ[name] for name in ("QUORATE_API_URL", "QUORATE_API_KEY", "QUORATE_GROUP_ID"))
    async with await quorate.connect_group(url, key, group, timeout=TIMEOUT_S) as log:
        futures: list[asyncio.Future[int]] = []
        begun = time.monotonic()
        while (passed := time.monotonic() - begun) < seconds:
            for _ in range(int(passed * rate_per_s) - len(futures)):
                await log.ready()
                futures.append(log.append(b"billed once"))
            await asyncio.sleep(TURN_S)
        ended = await asyncio.gather(*futures, return_exceptions=True)
        entries = await count(log)
    refused = sum(isinstance(each, quorate.AppendRefused) for each in ended)
    unknown = sum(isinstance(each, BaseException) for each in ended) - refused
    print(json.dumps({"acked": len(ended) - refused - unknown, "unknown": unknown, "refused": refused, "log": entries}))


async def count(log: quorate.Client) -> int:
    offset = entries = 0
    while True:
        found = await log.read(offset)
        if not found.entries:
            return entries
        entries += len(found.entries)
        offset = found.entries[-1].offset + 1


asyncio.run(main(int(sys.argv[1]), float(sys.argv[2])))
