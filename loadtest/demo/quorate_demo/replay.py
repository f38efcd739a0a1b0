"""Replays the trace into one group through the Python SDK, open loop. `../js/replay.mjs` is its twin.

Reads its configuration from stdin and reports progress and result on stdout (see `program.py`). Every tick, the entries
that have become due are appended as one batch. Entries beyond the limit of outstanding ones stay due and join the next
batch, so that memory is bounded. Latency is not.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import quorate
from quorate_demo.entries import EntryFormat
from quorate_demo.trace import Schedule

TICK_S = 0.005
PROGRESS_S = 0.25
BATCH_ENTRIES_MAX = 2_048
OUTSTANDING_BATCHES_MAX = 128  # the SDK has its own window; this bounds what waits for it
APPEND_TIMEOUT_S = 30.0  # longer than any failover, so that only a broken service loses an append


@dataclass
class Tally:
    """`batches`: first number, count, offset, microsecond of the acknowledgement since the begin.
    `refused`, `unknown`: first number, count, reason."""

    offered: int = 0
    acked: int = 0
    batches: list[tuple[int, int, int, int]] = field(default_factory=list)
    refused: list[tuple[int, int, str]] = field(default_factory=list)
    unknown: list[tuple[int, int, str]] = field(default_factory=list)


async def replay(config: dict[str, Any]) -> Tally:
    schedule = Schedule(config["first_minute"], config["requests"], config["seconds"])
    entries = EntryFormat(config["day"], config["org"], schedule)
    begin_s = config["begin_monotonic_s"]  # the same clock for every program of the demo
    tally = Tally()
    outstanding: set[asyncio.Task[None]] = set()
    async with await quorate.connect_group(config["api_url"], config["api_key"], config["group_id"]) as log:
        reported_s = 0.0
        while tally.offered < schedule.total:
            now_s = time.monotonic()
            due = schedule.due(now_s - begin_s)
            while tally.offered < due and len(outstanding) < OUTSTANDING_BATCHES_MAX:
                end = min(due, tally.offered + BATCH_ENTRIES_MAX)
                batch = entries.encode_range(tally.offered, end)
                task = asyncio.create_task(_append(log, tally.offered, batch, begin_s, tally))
                outstanding.add(task)
                task.add_done_callback(outstanding.discard)
                tally.offered = end
            if now_s - reported_s > PROGRESS_S:
                reported_s = now_s
                _tell({"progress": {"offered": tally.offered, "due": due, "acked": tally.acked}})
            await asyncio.sleep(TICK_S)
        while outstanding:
            await asyncio.wait(outstanding, timeout=PROGRESS_S)
            _tell({"progress": {"offered": tally.offered, "due": tally.offered, "acked": tally.acked}})
    return tally


async def _append(log: quorate.Client, first: int, batch: list[bytes], begin_s: float, tally: Tally) -> None:
    try:
        appended = await log.append_many(batch, timeout=APPEND_TIMEOUT_S)
    except quorate.AppendRefused as error:
        tally.refused.append((first, len(batch), str(error)))
    except quorate.AppendUnknown as error:
        tally.unknown.append((first, len(batch), str(error)))
    else:
        tally.acked += len(batch)
        tally.batches.append((first, len(batch), appended.base_offset, int((time.monotonic() - begin_s) * 1e6)))


def _tell(message: dict[str, Any]) -> None:
    print(json.dumps(message, separators=(",", ":")), flush=True)


def main() -> None:
    tally = asyncio.run(replay(json.load(sys.stdin)))
    result = {"offered": tally.offered, "batches": tally.batches, "refused": tally.refused, "unknown": tally.unknown}
    _tell({"result": result})


if __name__ == "__main__":
    main()
