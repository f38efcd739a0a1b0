"""Appends an entry, then prints the log from there on for a second."""

import asyncio
import contextlib
import os

import quorate


async def main() -> None:
    url, key, group = (os.environ[name] for name in ("QUORATE_API_URL", "QUORATE_API_KEY", "QUORATE_GROUP_ID"))
    async with await quorate.connect_group(url, key, group) as log:
        offset = await log.append(b"hello")
        print(f"appended at offset {offset}")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1), log.tail(offset) as tail:
                async for entry in tail:
                    print(entry.offset, entry.data)


asyncio.run(main())
