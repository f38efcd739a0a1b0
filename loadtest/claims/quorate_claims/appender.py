"""A client of the Python SDK: appends numbered entries, one after the other, until it is told to stop.

`python appender.py SDK NAME OUT GROUP…`, with QUORATE_API_URL and QUORATE_API_KEY. SDK is the folder of its sources.
Writes a line of JSON to OUT for each append: `{group, number, at_s, offset}`, or `error` in the place of `offset`.
"""

import asyncio
import json
import os
import signal
import sys
import time
from typing import IO

sys.path.insert(0, sys.argv[1])
import quorate

assert quorate.__file__.startswith(sys.argv[1]), quorate.__file__

PAUSE_S = 0.02


async def append_to(name: str, group: str, out: IO[str], stopping: asyncio.Event) -> None:
    url, key = os.environ["QUORATE_API_URL"], os.environ["QUORATE_API_KEY"]
    async with await quorate.connect_group(url, key, group) as log:
        number = 0
        while not stopping.is_set():
            line: dict[str, object] = {"group": group, "number": number}
            try:
                line["offset"] = await log.append(f"{name} {number}".encode())
            except quorate.QuorateError as error:
                line["error"] = str(error)
            line["at_s"] = time.time()
            out.write(json.dumps(line) + "\n")
            number += 1
            await asyncio.sleep(PAUSE_S)


async def main() -> None:
    name, path, *groups = sys.argv[2:]
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    with open(path, "w", buffering=1, encoding="utf-8") as out:
        await asyncio.gather(*(append_to(name, group, out, stopping) for group in groups))


asyncio.run(main())
