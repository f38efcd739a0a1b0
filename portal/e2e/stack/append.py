"""Appends small entries to a group for a while. The journey starts it as a customer would start a program.

The environment has QUORATE_API_URL, QUORATE_API_KEY, QUORATE_GROUP_ID and QUORATE_APPEND_S. The package `quorate`
(sdk/python) is required. It prints the number of acknowledged entries.
"""

import asyncio
import os
import time

import quorate

BATCH_ENTRIES = 20
PAUSE_S = 0.1


async def main() -> None:
    log = await quorate.connect_group(
        os.environ["QUORATE_API_URL"], os.environ["QUORATE_API_KEY"], os.environ["QUORATE_GROUP_ID"]
    )
    until = time.monotonic() + float(os.environ.get("QUORATE_APPEND_S", "20"))
    acked = 0
    async with log:
        while time.monotonic() < until:
            await asyncio.gather(*(log.append(b"journey %d" % (acked + n)) for n in range(BATCH_ENTRIES)))
            acked += BATCH_ENTRIES
            await asyncio.sleep(PAUSE_S)
    print(acked)


asyncio.run(main())
