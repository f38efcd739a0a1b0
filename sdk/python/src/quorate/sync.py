"""The same client without async: its event loop runs in a thread of its own.

    with quorate.sync.connect(handle) as client:
        offset = client.append(b"hello")

All methods may be called from any thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

from quorate import client as async_client
from quorate import limits
from quorate.appender import Appended
from quorate.arguments import Bytes, HandleLike
from quorate.client import GroupStatus, ReadResult
from quorate.codes import Code
from quorate.errors import Failure, append_refused
from quorate.group import connect_group as _connect_group
from quorate.handle import Handle
from quorate.reader import Tail
from quorate.tail import Entry

Result = TypeVar("Result")


class LoopThread:
    """An event loop in a daemon thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="quorate", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run to the end and return the result."""
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # on KeyboardInterrupt the caller waits no more
            raise

    def stop(self) -> None:
        if self._thread.is_alive():
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join(timeout=5.0)

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        self.loop.close()


def connect(
    handle: HandleLike,
    *,
    refresh: Callable[[], HandleLike] | None = None,
    timeout: float = limits.TIMEOUT_S_DEFAULT,
    answer_wait: float = limits.ANSWER_WAIT_S_DEFAULT,
    read_only: bool = False,
    tracer: Any = None,
    pace: bool = True,
    spread_reads: bool = False,
) -> Client:
    """As `quorate.connect`. `refresh` is called in a thread of its own and may block."""

    async def refresh_in_thread() -> HandleLike:
        assert refresh is not None
        return await asyncio.to_thread(refresh)

    source = refresh_in_thread if refresh else None
    return Client(
        lambda: async_client.connect(
            handle,
            refresh=source,
            timeout=timeout,
            answer_wait=answer_wait,
            read_only=read_only,
            tracer=tracer,
            pace=pace,
            spread_reads=spread_reads,
        )
    )


def connect_group(
    api_url: str,
    api_key: str,
    group_id: str,
    *,
    timeout: float = limits.TIMEOUT_S_DEFAULT,
    answer_wait: float = limits.ANSWER_WAIT_S_DEFAULT,
    read_only: bool = False,
    tracer: Any = None,
    pace: bool = True,
    spread_reads: bool = False,
) -> Client:
    """As `quorate.connect_group`."""
    return Client(
        lambda: _connect_group(
            api_url,
            api_key,
            group_id,
            timeout=timeout,
            answer_wait=answer_wait,
            read_only=read_only,
            tracer=tracer,
            pace=pace,
            spread_reads=spread_reads,
        )
    )


class Client:
    """The client that `connect` and `connect_group` return."""

    def __init__(self, connect: Callable[[], Coroutine[Any, Any, async_client.Client]]) -> None:
        self._thread = LoopThread()
        self._lock = threading.Lock()
        self._submitted: deque[tuple[Future[Any], Callable[[], asyncio.Future[Any]]]] = deque()
        self._closed = False
        try:
            self._client = self._thread.run(connect())
        except BaseException:
            self._thread.stop()
            raise

    @property
    def handle(self) -> Handle:
        return self._client.handle

    def append(
        self,
        entry: Bytes,
        *,
        timeout: float | None = None,
        expected_offset: int | None = None,
        fencing_token: int | None = None,
    ) -> int:
        """Append one entry and wait for its offset. Raises AppendRefused or AppendUnknown."""
        return self.submit(
            entry, timeout=timeout, expected_offset=expected_offset, fencing_token=fencing_token
        ).result()

    def submit(
        self,
        entry: Bytes,
        *,
        timeout: float | None = None,
        expected_offset: int | None = None,
        fencing_token: int | None = None,
    ) -> Future[int]:
        """Append one entry without waiting. Outstanding appends share batches. The order of one thread's entries is
        the order of its calls."""
        client, data = self._client, bytes(entry) if isinstance(entry, (bytearray, memoryview)) else entry
        return self._submit(
            lambda: client.append(data, timeout=timeout, expected_offset=expected_offset, fencing_token=fencing_token)
        )

    def append_many(
        self,
        entries: Iterable[Bytes],
        *,
        timeout: float | None = None,
        expected_offset: int | None = None,
        fencing_token: int | None = None,
    ) -> Appended:
        """Append entries ordered as one, and wait."""
        client, listed = self._client, list(entries)
        future: Future[Appended] = self._submit(
            lambda: client.append_many(
                listed, timeout=timeout, expected_offset=expected_offset, fencing_token=fencing_token
            )
        )
        return future.result()

    def ready(self) -> None:
        """Wait until few enough submitted appends are outstanding."""
        self._thread.run(self._client.ready())

    def read(
        self,
        offset: int,
        *,
        max_entries: int = 1_000,
        max_bytes: int = limits.READ_BYTES_DEFAULT,
        wait: float = 0.0,
        timeout: float | None = None,
    ) -> ReadResult:
        return self._thread.run(
            self._client.read(offset, max_entries=max_entries, max_bytes=max_bytes, wait=wait, timeout=timeout)
        )

    def tail(self, from_offset: int = 0) -> Iterator[Entry]:
        """Follow the log without end. Close the iterator (or leave the loop) to stop."""

        async def start() -> Tail:
            return self._client.tail(from_offset)

        tail = self._thread.run(start())
        try:
            while True:
                yield from self._thread.run(tail.next_entries())
        finally:
            if not self._closed:
                self._thread.run(tail.aclose())

    def trim(self, before_offset: int, *, timeout: float | None = None) -> int:
        """Discard the entries before `before_offset` on every replica. Returns the trim offset."""
        return self._thread.run(self._client.trim(before_offset, timeout=timeout))

    def status(self, *, timeout: float | None = None) -> GroupStatus:
        return self._thread.run(self._client.status(timeout=timeout))

    def close(self, *, drain: bool = True) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._thread.run(self._client.close(drain=drain))
        self._thread.stop()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, error_type: object, *_: object) -> None:
        self.close(drain=error_type is None)

    def _submit(self, start: Callable[[], asyncio.Future[Any]]) -> Future[Any]:
        future: Future[Any] = Future()
        with self._lock:
            if self._closed:
                future.set_exception(append_refused(Failure(Code.CLIENT_CLOSED)))
                return future
            self._submitted.append((future, start))
            if len(self._submitted) == 1:  # else the loop has been woken already
                self._thread.loop.call_soon_threadsafe(self._start_submitted)
        return future

    def _start_submitted(self) -> None:
        with self._lock:
            submitted, self._submitted = self._submitted, deque()
        for future, start in submitted:
            try:
                started = start()
            except Exception as problem:  # a TypeError or ValueError of the caller
                future.set_exception(problem)
                continue
            started.add_done_callback(lambda done, future=future: _copy(done, future))  # type: ignore[misc]


def _copy(done: asyncio.Future[Any], future: Future[Any]) -> None:
    if not future.set_running_or_notify_cancel():
        done.cancelled() or done.exception()  # marks the exception as seen, so that asyncio does not log it
        return
    error = done.exception()
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(done.result())


class Control:
    """`quorate.control.Control` without async: the same methods; listings return lists."""

    def __init__(self, api_url: str, api_key: str, *, timeout: float = limits.TIMEOUT_S_DEFAULT) -> None:
        from quorate import control

        self._thread = LoopThread()
        self._control = control.Control(api_url, api_key, timeout=timeout)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._control, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            return self._thread.run(_finish(method(*args, **kwargs)))

        return call

    def close(self) -> None:
        self._thread.run(self._control.close())
        self._thread.stop()

    def __enter__(self) -> Control:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


async def _finish(started: Awaitable[Any] | AsyncIterator[Any]) -> Any:
    if isinstance(started, AsyncIterator):
        return [item async for item in started]
    return await started
