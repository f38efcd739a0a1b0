"""Appends to a group and tails it until it is deleted, in Python. Prints "ready", then how both ended, as JSON.

Times are wall-clock seconds. Address, key and group come from the environment.
"""

import asyncio
import json
import os
import time

import quorate

APPEND_EACH_S = 0.02
GIVE_UP_S = 60.0


async def append(log: quorate.Client, begun: asyncio.Event) -> str:
    while True:
        try:
            await log.append(b"still here")
        except quorate.CodedError as error:
            return f"{error.name}: {error}"
        begun.set()
        await asyncio.sleep(APPEND_EACH_S)


async def tail(log: quorate.Client) -> str:
    try:
        async for _ in log.tail():
            pass
    except quorate.CodedError as error:
        return f"{error.name}: {error}"
    return "ended"


async def main() -> None:
    url, key, group = (os.environ[name] for name in ("QUORATE_API_URL", "QUORATE_API_KEY", "QUORATE_GROUP_ID"))

    async def timed(work: asyncio.Future[str] | asyncio.Task[str]) -> dict[str, object]:
        answer = await asyncio.wait_for(work, GIVE_UP_S)
        return {"at_s": time.time(), "answer": answer}

    async with await quorate.connect_group(url, key, group) as log:
        begun = asyncio.Event()
        parts = [asyncio.create_task(append(log, begun)), asyncio.create_task(tail(log))]
        await begun.wait()
        print("ready", flush=True)
        appended, tailed = await asyncio.gather(*map(timed, parts))
    print(json.dumps({"append": appended, "tail": tailed}))


asyncio.run(main())
