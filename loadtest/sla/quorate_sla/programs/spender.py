"""A client that appends all that it can until its group is suspended. Prints its count four times a second, as JSON:
the time, and how many appends were acked and of how many the outcome is unknown.

Arguments: the size of an entry in bytes, seconds. Address, key and group come from the environment. Ends once an append
is refused with `group_suspended`, or after the seconds.
"""

import asyncio
import contextlib
import json
import os
import sys
import time

import quorate

CALLERS = 2_000
EVERY_S = 0.25


class Count:
    def __init__(self) -> None:
        self.acked = 0
        self.unknown = 0
        self.is_suspended = False

    def note(self, future: "asyncio.Future[int]") -> None:
        if future.cancelled():
            self.unknown += 1
            return
        error = future.exception()
        if error is None:
            self.acked += 1
        elif isinstance(error, quorate.AppendUnknown):
            self.unknown += 1
        elif isinstance(error, quorate.AppendRefused) and error.name == "group_suspended":
            self.is_suspended = True

    def tell(self) -> None:
        now = {"at_s": time.time(), "acked": self.acked, "unknown": self.unknown, "suspended": self.is_suspended}
        print(json.dumps(now), flush=True)


async def spend(log: quorate.Client, size_bytes: int, count: Count) -> None:
    """Callers that each await their append, at no pace: so many as burst capacity lets through."""

    async def caller() -> None:
        while True:
            future = log.append(bytes(size_bytes))
            future.add_done_callback(count.note)
            with contextlib.suppress(quorate.QuorateError):
                await future

    await asyncio.gather(*(caller() for _ in range(CALLERS)))


async def main(size_bytes: int, seconds: float) -> None:
    url, key, group = (os.environ[name] for name in ("QUORATE_API_URL", "QUORATE_API_KEY", "QUORATE_GROUP_ID"))
    count, end_s = Count(), time.monotonic() + seconds
    async with await quorate.connect_group(url, key, group, pace=False) as log:
        spending = asyncio.ensure_future(spend(log, size_bytes, count))
        while time.monotonic() < end_s and not count.is_suspended:
            count.tell()
            await asyncio.sleep(EVERY_S)
        spending.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await spending
    count.tell()


asyncio.run(main(int(sys.argv[1]), float(sys.argv[2])))
