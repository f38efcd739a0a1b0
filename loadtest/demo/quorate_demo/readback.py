"""Reads one group's whole log back through the Python SDK and says what is in it, as runs.

`../js/readback.mjs` is its twin. Each entry is checked to the last byte; one that is not as it was
written counts as corrupted.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import quorate
from quorate_demo.entries import EntryFormat
from quorate_demo.trace import Schedule

READ_TIMEOUT_S = 30.0
READ_ENTRIES = 16_384


async def read_back(config: dict[str, Any]) -> dict[str, Any]:
    """`runs`: offset, number, count; in the log's order."""
    schedule = Schedule(config["first_minute"], config["requests"], config["seconds"])
    entries = EntryFormat(config["day"], config["org"], schedule)
    runs: list[list[int]] = []
    corrupted = offset = 0
    async with await quorate.connect_group(config["api_url"], config["api_key"], config["group_id"]) as log:
        end = (await log.status()).commit_offset
        while offset < end:
            chunk = await log.read(offset, max_entries=READ_ENTRIES, timeout=READ_TIMEOUT_S)
            for entry in chunk.entries:
                number = entries.number_of(entry.data)
                if number is None:
                    corrupted += 1
                elif runs and runs[-1][0] + runs[-1][2] == entry.offset and runs[-1][1] + runs[-1][2] == number:
                    runs[-1][2] += 1
                else:
                    runs.append([entry.offset, number, 1])
            offset = chunk.next_offset
            print(json.dumps({"progress": {"read": offset, "of": end}}), flush=True)
    return {"runs": runs, "corrupted": corrupted}


def main() -> None:
    result = asyncio.run(read_back(json.load(sys.stdin)))
    print(json.dumps({"result": result}), flush=True)


if __name__ == "__main__":
    main()
