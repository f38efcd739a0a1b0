"""Repeating asyncio tasks, and ending them reliably."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

AGAIN_S = 1.0


async def end_task(task: asyncio.Task[Any]) -> None:
    """Cancel until the task is over: redis-py may swallow a cancellation at the start of a command."""
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=AGAIN_S)


async def repeat(work: Callable[[], Awaitable[None]], every_s: float) -> None:
    while True:
        await work()
        await asyncio.sleep(every_s)
