"""Appends each line of stdin, many at a time, and says what became of them."""

import asyncio
import os
import sys
from collections import Counter

import quorate


async def main() -> None:
    url, key, group = (os.environ[name] for name in ("QUORATE_API_URL", "QUORATE_API_KEY", "QUORATE_GROUP_ID"))
    outcomes: Counter[str] = Counter()

    def note(done: asyncio.Future[int]) -> None:
        error = done.exception()
        outcomes["acked" if error is None else type(error).__name__] += 1
        if error is not None:
            print(error, file=sys.stderr)

    async with await quorate.connect_group(url, key, group) as log:
        for line in sys.stdin.buffer:
            await log.ready()
            log.append(line.rstrip(b"\n")).add_done_callback(note)
        # Leaving the block waits for what is outstanding.
    print(dict(outcomes))


asyncio.run(main())
