"""The shell around `book.Book`: it owns sockets, clock and waits."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx2

from quorate import ConnectFailed, Tls, knock
from quorate.trust import client_context
from quorate_prober import limits
from quorate_prober.book import MINUTE_MS, Book, Minute

log = logging.getLogger("quorate_prober")

Knock = Callable[[str, Tls | None, float], Awaitable[int]]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass
class Prober:
    """One prober. `api`: a client with the API's address and a prober's token. `run` ends by being cancelled."""

    api: httpx2.AsyncClient
    name: str
    knock: Knock = knock
    book: Book = field(default_factory=Book)
    _tls: Tls | None = None
    _addresses: dict[int, str] = field(default_factory=dict)
    _knocking: dict[int, asyncio.Task[None]] = field(default_factory=dict)
    _untold: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=limits.MINUTES_KEPT_MAX))
    _told_at: dict[int, float] = field(default_factory=dict)

    async def run(self) -> None:
        tasks = [self._follow_targets(), self._tick(), self._write_minutes(), self._report()]
        try:
            async with asyncio.TaskGroup() as group:
                for task in tasks:
                    group.create_task(task)
        finally:
            for knocking in self._knocking.values():
                knocking.cancel()
            await asyncio.gather(*self._knocking.values(), return_exceptions=True)

    # -- servers ---------------------------------------------------------------------------------

    async def _follow_targets(self) -> None:
        while True:
            try:
                await self.read_targets()
            except (httpx2.HTTPError, ValueError) as problem:
                log.warning("the API does not tell its servers, so the known ones are watched: %s", problem)
            await asyncio.sleep(limits.TARGETS_INTERVAL_S)

    async def read_targets(self) -> None:
        """Ask the API for its servers. Raises httpx2.HTTPError, and ValueError for an answer that cannot be read."""
        answer = (await self.api.get("/v1/prober/targets")).raise_for_status().json()
        try:
            tls = Tls(str(answer["ca_pem"]))
            found = {int(each["server_id"]): str(each["address"]) for each in answer["servers"]}
        except (KeyError, TypeError) as problem:
            raise ValueError(f"its answer does not follow the contract: {problem!r}") from None
        client_context(tls.ca_pem)  # else no server would seem to answer
        if len(found) > limits.SERVERS_MAX:
            log.warning("of %d servers the first %d are watched", len(found), limits.SERVERS_MAX)
            found = dict(sorted(found.items())[: limits.SERVERS_MAX])
        self._tls, self._addresses = tls, found
        self.book.watch(found, now_ms())
        for gone in self._knocking.keys() - found.keys():
            self._knocking.pop(gone).cancel()
        for new in found.keys() - self._knocking.keys():
            self._knocking[new] = asyncio.create_task(self._knock_at(new), name=f"knock at {new}")

    async def _knock_at(self, server: int) -> None:
        await asyncio.sleep(random.random() * limits.KNOCK_INTERVAL_S)
        while True:
            begun_ms = now_ms()
            reached = await self._reaches(server, begun_ms)
            spread_s = len(self._addresses) / limits.KNOCKS_PER_S_MAX
            wait_s = limits.KNOCK_INTERVAL_S if reached else limits.KNOCK_AGAIN_S
            await asyncio.sleep(max(spread_s, wait_s - (now_ms() - begun_ms) / 1_000 if reached else wait_s))

    async def _reaches(self, server: int, begun_ms: int) -> bool:
        try:
            answered = await self.knock(self._addresses[server], self._tls, limits.KNOCK_TIMEOUT_S)
            if answered != server:
                raise ValueError(f"server {answered} answers there")
        except (ConnectFailed, ValueError) as problem:
            if self.book.missed(server, begun_ms):
                self._tell_miss(server, problem)
            return False
        self.book.answered(server, now_ms())
        return True

    def _tell_miss(self, server: int, problem: Exception) -> None:
        now_s = time.monotonic()
        if now_s - self._told_at.get(server, float("-inf")) >= limits.MISSES_TOLD_EVERY_S:
            self._told_at[server] = now_s
            log.warning("server %d does not answer: %s", server, problem)

    async def _tick(self) -> None:
        """Notice when this process, or its machine, stands still, and when somebody sets its clock. A defect of a task
        that knocks ends the prober: its server would seem to be watched."""
        while True:
            for knocking in self._knocking.values():
                if knocking.done():
                    knocking.result()
            before_s, before_ms = time.monotonic(), now_ms()
            await asyncio.sleep(limits.TICK_S)
            passed_s, after_ms = time.monotonic() - before_s, now_ms()
            if passed_s > limits.TICK_S + limits.STANDSTILL_S:
                log.warning("this prober stood still for %.1f s", passed_s)
                self.book.stood_still(before_ms, after_ms)
            elif abs(set_s := (after_ms - before_ms) / 1_000 - passed_s) > limits.CLOCK_SET_S:
                log.warning("this prober's clock was set by %+.1f s", set_s)
                self.book.stood_still(min(before_ms, after_ms), max(before_ms, after_ms))

    # -- reports ---------------------------------------------------------------------------------

    async def _write_minutes(self) -> None:
        """Keep each minute for the report once it has settled."""
        next_ms = (now_ms() // MINUTE_MS + 1) * MINUTE_MS
        while True:
            due_ms = next_ms + MINUTE_MS + int(limits.SETTLE_S * 1_000)
            while (left_ms := due_ms - now_ms()) > 0:
                await asyncio.sleep(min(left_ms / 1_000, limits.REPORT_INTERVAL_S))
            self._untold.append(as_json(self.book.minute(next_ms, now_ms())))
            next_ms += MINUTE_MS
            self.book.forget(next_ms)

    async def _report(self) -> None:
        retry_s = limits.REPORT_INTERVAL_S
        while True:
            if self._untold and not await self.report_some():
                log.warning("%d minutes wait for the API", len(self._untold))
                await asyncio.sleep(retry_s * random.random())
                retry_s = min(2 * retry_s, limits.REPORT_RETRY_S_MAX)
                continue
            retry_s = limits.REPORT_INTERVAL_S
            await asyncio.sleep(0.0 if self._untold else limits.REPORT_INTERVAL_S)

    async def report_some(self) -> bool:
        """Tell the oldest minutes. Returns whether the API took or refused them: repeating changes nothing."""
        some = first_that_fit(list(self._untold)[: limits.REPORT_MINUTES_MAX])
        try:
            answer = await self.api.post("/v1/prober/minutes", json={"prober": self.name, "minutes": some})
        except httpx2.HTTPError as problem:
            log.warning("the API does not take reports: %s", problem)
            return False
        if answer.status_code in (413, 422):
            log.error("the API refused %d minutes: %s", len(some), answer.text)
        elif not answer.is_success:
            log.warning("the API does not take reports: %d %s", answer.status_code, answer.text)
            return False
        for minute in some:
            if self._untold and self._untold[0] is minute:  # else it made room for a later one
                self._untold.popleft()
        return True


def as_json(minute: Minute) -> dict[str, Any]:
    """The minute as the API takes it."""
    failed = [
        {
            "server_id": server,
            "times": [[from_ms - minute.start_ms, to_ms - minute.start_ms] for from_ms, to_ms in times],
        }
        for server, times in minute.failed.items()
    ]
    return {"minute_s": minute.start_ms // 1_000, "watched": list(minute.watched), "failed": failed}


def first_that_fit(minutes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first ones that fit a request, and one at least."""
    found: list[dict[str, Any]] = []
    size = 0
    for minute in minutes:
        size += len(json.dumps(minute))
        if found and size > limits.REPORT_BYTES_MAX:
            break
        found.append(minute)
    return found
