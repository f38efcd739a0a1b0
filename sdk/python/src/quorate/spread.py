"""Reads spread over all replicas of a group: a connection to each, and windows that say which is asked next.

A read that a replica cannot answer is asked elsewhere. Reads that wait for entries, tails, trims and status calls go to
the head, as those of clients that do not spread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from quorate import wire
from quorate.codes import Code
from quorate.errors import Failure, ReadRefused
from quorate.link import Handles, Link
from quorate.reader import Reader
from quorate.windows import Windows


class _ReplicaReader(Reader):
    """A reader of one replica: what it has not answered is asked elsewhere when its connection breaks."""

    def on_detached(self, failure: Failure) -> None:
        self._fail_all(failure._replace(code=Code.NO_CONNECTION, retryable=True))

    async def leave(self) -> None:
        self.on_detached(Failure(Code.NO_CONNECTION, "the replica is not asked any more"))
        self.close()
        await self.link.close()


class SpreadReads:
    """`end`: the offset behind the last entry that this client knows to be committed, by whatever answer."""

    def __init__(self, loop: asyncio.AbstractEventLoop, handles: Handles) -> None:
        self._loop = loop
        self._handles = handles
        self._version = -1
        self._is_closed = False
        self._readers: dict[str, _ReplicaReader] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._windows = Windows()
        self.end = 0

    async def read(self, build: Callable[[int], wire.Message], offset: int, timeout_s: float) -> wire.Entries | None:
        """The answer of a replica; None: the head is to be asked. Raises ReadRefused as it does."""
        ends_at = self._loop.time() + timeout_s
        tried: set[str] = set()
        while True:
            now = self._loop.time()
            address = self._windows.choose(now, (one for one in self._ready() if one not in tried))
            if address is None or now >= ends_at:
                return None
            try:
                answer = await self._ask(address, build, ends_at - now)
            except ReadRefused as refused:
                if refused.code not in (Code.NO_CONNECTION, Code.QUEUE_FULL, Code.GROUP_NOT_HERE):
                    raise
                tried.add(address)
                continue
            self.note(answer)
            # The replica has not heard of the commitment yet.
            return None if not answer.batches and offset < self.end else answer

    def note(self, answer: wire.Entries) -> None:
        self.end = max(self.end, answer.commit_offset)

    async def _ask(self, address: str, build: Callable[[int], wire.Message], timeout_s: float) -> Any:
        begun = self._loop.time()
        self._windows.sent(begun, address)
        try:
            answer = await self._readers[address].request(build, timeout_s)
        except BaseException as problem:
            if isinstance(problem, ReadRefused) and not problem.retryable:
                self._windows.answered(address, self._loop.time() - begun)
            else:
                self._windows.failed(address)
            raise
        self._windows.answered(address, self._loop.time() - begun)
        return answer

    def _ready(self) -> list[str]:
        """Replicas with a connection. Others are dialled meanwhile."""
        if self._version != self._handles.version and not self._is_closed:
            self._follow_handle()
        ready = []
        for address, reader in self._readers.items():
            if reader.link.connection is not None:
                ready.append(address)
            else:
                reader.link.want()
        return ready

    def _follow_handle(self) -> None:
        self._version = self._handles.version
        addresses = self._handles.handle.addresses()
        for address in addresses:
            if address not in self._readers:
                reader = self._readers[address] = _ReplicaReader(self._loop)
                Link(reader, self._handles, only=address)
        for address in [one for one in self._readers if one not in addresses]:
            task = self._loop.create_task(self._readers.pop(address).leave())
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)
        self._windows.keep(addresses)

    async def close(self) -> None:
        self._is_closed = True
        readers, self._readers = list(self._readers.values()), {}
        await asyncio.gather(*self._leaving, *(reader.leave() for reader in readers))
