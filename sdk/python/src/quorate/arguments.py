"""Arguments of callers: checked, and brought into one form."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from quorate import wire
from quorate.handle import Handle

HandleLike = Handle | Mapping[str, Any] | str | bytes
Bytes = bytes | bytearray | memoryview


def source_of(
    refresh: Callable[[], Awaitable[HandleLike] | HandleLike],
) -> Callable[[], Awaitable[Handle]]:
    async def source() -> Handle:
        found = refresh()
        return Handle.parse(await found if inspect.isawaitable(found) else found)

    return source


def as_bytes(entry: object) -> bytes:
    if isinstance(entry, bytes):
        return entry
    if isinstance(entry, (bytearray, memoryview)):
        return bytes(entry)  # a copy: the caller may change the original before it is sent
    hint = "; encode it first" if isinstance(entry, str) else ""
    raise TypeError(f"an entry is bytes, not {type(entry).__name__}{hint}")


def check_timeout(timeout: float) -> float:
    if not 0.0 < timeout < 4_000_000.0:
        raise ValueError(f"a timeout is a positive number of seconds, not {timeout}")
    return timeout


def check_u64(name: str, value: int | None) -> None:
    if value is not None and not 0 <= value < wire.NO_EXPECTED_OFFSET:
        raise ValueError(f"{name} is an integer from 0 to 2**64 - 2, not {value}")
