"""Reads spread over three replicas, one of which is ten times as slow: by windows, beside each replica in its turn.

The slow server stands still for nine of every ten milliseconds (SIGSTOP and SIGCONT), so that its answers take as long
as a machine's that has a tenth of a core. A client of the Python SDK keeps a number of reads under way; both ways of
choosing follow one another in turn, each with a client of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import quorate
from quorate.windows import Windows
from quorate_claims.claim import Conditions
from quorate_harness.figures import Figure
from quorate_harness.fleet import Fleet, MeasurementFailed, fleet
from quorate_harness.quantiles import median, quantile

BATCHES, ENTRY_BYTES = 200, 100
READ_ENTRIES = 10  # a batch
OUTSTANDING = 8
ROUNDS = 5
SECONDS = 6.0
KNOWN_WITHIN_S = 1.0  # a slow replica gets less within this; what came before does not count
RUNS_S, STANDS_STILL_S = 0.001, 0.009
RATE_PER_S = 5_000
BY_WINDOWS, IN_TURN = "by windows", "in turn"


class InTurn(Windows):
    """Each replica in its turn."""

    def __init__(self) -> None:
        super().__init__()
        self._turn = 0

    def choose(self, now: float, ready: Iterable[str]) -> str | None:
        addresses = sorted(ready)
        self._turn += 1
        return addresses[self._turn % len(addresses)] if addresses else None


@dataclass(frozen=True)
class Reads:
    p50_ms: float
    p99_ms: float
    per_s: float


def measure(conditions: Conditions) -> list[Figure]:
    rounds = 1 if conditions.quick else ROUNDS
    found: dict[str, list[Reads]] = {IN_TURN: [], BY_WINDOWS: []}
    with fleet(conditions.folder, conditions.display, 3) as servers:
        group = servers.create_group("reads", "in_memory", RATE_PER_S, size=ENTRY_BYTES)
        servers.wait_whole(group)
        handle = servers.signed_handle(group)
        asyncio.run(_fill(handle))
        with _slowed(_last_of(servers, group)):
            for _ in range(rounds):
                for way, windows in ((IN_TURN, InTurn), (BY_WINDOWS, Windows)):
                    one = asyncio.run(_read(handle, windows))
                    found[way].append(one)
                    conditions.display.line(
                        f"  {way}: p50 {one.p50_ms:.2f} ms, p99 {one.p99_ms:.2f} ms, {one.per_s:.0f} reads/s"
                    )
    return figures(found)


def figures(found: dict[str, list[Reads]]) -> list[Figure]:
    pairs = list(zip(found[BY_WINDOWS], found[IN_TURN], strict=True))
    ratios = [windows.p99_ms / turn.p99_ms for windows, turn in pairs]
    p99s = {way: median([one.p99_ms for one in reads]) for way, reads in found.items()}
    note = f"p99 {p99s[BY_WINDOWS]:.1f} ms, and {p99s[IN_TURN]:.1f} ms in turn; median of {len(pairs)} pairs of runs, "
    note += f"{OUTSTANDING} reads under way, one of three replicas stands still for nine tenths of the time"
    gain = median([windows.per_s / turn.per_s for windows, turn in pairs])
    return [
        Figure("read_selection_p99_ratio", median(ratios), "ratio", 0.5, note=note),
        Figure("read_selection_throughput_ratio", gain, "ratio", 1.0, True, "reads/s by windows over those in turn"),
    ]


async def _fill(handle: dict[str, object]) -> None:
    async with await quorate.connect(handle) as client:
        for _ in range(BATCHES):
            await client.append_many([bytes(ENTRY_BYTES)] * READ_ENTRIES)


async def _read(handle: dict[str, object], windows: Callable[[], Windows]) -> Reads:
    async with await quorate.connect(handle, read_only=True, spread_reads=True) as client:
        assert client._spread is not None
        client._spread._windows = windows()
        begins_at = time.monotonic() + KNOWN_WITHIN_S
        ends_at = begins_at + SECONDS
        taken_ms: list[float] = []

        async def keep_reading(number: int) -> None:
            batch = number * 37
            while (begun := time.monotonic()) < ends_at:
                batch = (batch + 11) % BATCHES
                result = await client.read(batch * READ_ENTRIES, max_entries=READ_ENTRIES)
                if len(result.entries) != READ_ENTRIES:
                    raise MeasurementFailed(f"a read of batch {batch} has {len(result.entries)} entries")
                if begun >= begins_at:
                    taken_ms.append((time.monotonic() - begun) * 1_000)

        await asyncio.gather(*(keep_reading(number) for number in range(OUTSTANDING)))
    return Reads(quantile(taken_ms, 0.5), quantile(taken_ms, 0.99), len(taken_ms) / SECONDS)


def _last_of(servers: Fleet, group: str) -> int:
    address = servers.group(group)["replicas"][-1]["address"]
    return servers.pid(servers.stack.servers_by_address()[address])


@contextlib.contextmanager
def _slowed(pid: int) -> Iterator[None]:
    """A thread stops the process for most of the time, and lets it go on in the end."""
    over = threading.Event()

    def alternate() -> None:
        while not over.is_set():
            os.kill(pid, signal.SIGSTOP)
            time.sleep(STANDS_STILL_S)
            os.kill(pid, signal.SIGCONT)
            time.sleep(RUNS_S)

    thread = threading.Thread(target=alternate)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        os.kill(pid, signal.SIGCONT)
