"""Ending asyncio tasks for certain."""

import asyncio

AGAIN_S = 1.0


async def end_task(task: asyncio.Task[None]) -> None:
    """Cancel until it is over: redis-py may swallow a cancellation that meets the start of a command."""
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=AGAIN_S)
