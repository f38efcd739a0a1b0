"""Increases a counter by one. However many processes do so at once, no increase is lost.

The log is the truth: the counter is the number of `+1` entries. An increase is appended only if nothing was
appended since we looked, which is what a process that must decide by the present state does.
"""

import asyncio
import os

import quorate


async def main() -> None:
    url, key, group = (os.environ[name] for name in ("QUORATE_API_URL", "QUORATE_API_KEY", "QUORATE_GROUP_ID"))
    async with await quorate.connect_group(url, key, group) as log:
        counter = 0
        offset = (await log.status()).trim_offset
        while True:
            while offset < (found := await log.read(offset)).commit_offset:
                counter += sum(entry.data == b"+1" for entry in found.entries)
                offset = found.next_offset
            try:
                await log.append(b"+1", expected_offset=offset)
            except quorate.ConditionFailed:
                continue  # somebody was quicker: read what they appended, and try again
            print(counter + 1)
            return


asyncio.run(main())
