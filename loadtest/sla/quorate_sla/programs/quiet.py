"""A client that appends an entry now and then. Prints each append as JSON: when, how long it took, and how it ended.

Arguments: the size of an entry in bytes, milliseconds between appends, seconds. Address, key and group come from the
environment. The first append is not counted: it connects.
"""

import asyncio
import json
import os
import sys
import time

import quorate


async def main(size_bytes: int, every_ms: int, seconds: float) -> None:
    url, key, group = (os.environ[name] for name in ("QUORATE_API_URL", "QUORATE_API_KEY", "QUORATE_GROUP_ID"))
    async with await quorate.connect_group(url, key, group) as log:
        await log.append(bytes(size_bytes))
        print(json.dumps("ready"), flush=True)
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s:
            begun_s, at_s, error = time.monotonic(), time.time(), ""
            try:
                await log.append(bytes(size_bytes))
            except quorate.QuorateError as problem:
                error = str(problem)
            took_s = time.monotonic() - begun_s
            print(json.dumps({"at_s": at_s, "took_ms": took_s * 1_000, "error": error}), flush=True)
            await asyncio.sleep(max(0.0, every_ms / 1_000 - took_s))


asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
