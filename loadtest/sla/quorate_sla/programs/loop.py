"""The loop of the Python SDK's README, for a group and entries of one size. Prints how the appends ended, as JSON.

Arguments: the size of an entry in bytes, the number of entries. Address, key and group come from the environment.
"""

import asyncio
import json
import os
import sys

import quorate


async def main(size_bytes: int, entries: int) -> None:
    url, key, group = (os.environ[name] for name in ("QUORATE_API_URL", "QUORATE_API_KEY", "QUORATE_GROUP_ID"))
    async with await quorate.connect_group(url, key, group) as log:
        futures = []
        for number in range(entries):
            await log.ready()
            futures.append(log.append(number.to_bytes(size_bytes)))
        ended = await asyncio.gather(*futures, return_exceptions=True)
    failed = [each for each in ended if isinstance(each, BaseException)]
    print(
        json.dumps(
            {"acked": len(ended) - len(failed), "failed": len(failed), "first": str(failed[0]) if failed else ""}
        )
    )


asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
